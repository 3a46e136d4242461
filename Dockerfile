# Ada in a container: the same commands as ./ada, run by an ordinary user.
FROM python:3.13-slim AS libraries
COPY requirements.lock /
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r /requirements.lock

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data ada && install -d -o ada -g ada /data /data/speech /data/pictures
COPY --from=libraries /venv /venv
WORKDIR /ada
COPY bench bench
COPY scenarios scenarios
COPY tools tools
COPY cli cli
COPY core core
COPY couriers couriers
COPY delivery delivery
COPY examples examples
COPY jobs jobs
COPY lua lua
COPY providers providers
COPY sandbox sandbox
RUN python -m compileall -q -j 0 .
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 ADA_DATA=/data ADA_HTTP=0.0.0.0:8080
USER ada
VOLUME /data
EXPOSE 8080
ENTRYPOINT ["/venv/bin/python", "-m", "cli"]
CMD ["serve"]
