"""Takes out of documents who has written them: PDF, the forms of Office and OpenDocument, SVG, and archives of files.

The words of a document stay. A form of which not all is known is refused: see `without_metadata`.
Sources: ISO 32000 (PDF), ECMA-376 (Office Open XML), OpenDocument 1.3, SVG 2.
"""

import io
import re
import subprocess
import sys
import zipfile
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

_PROGRAM = Path(__file__).parent / "pdf_program.py"
_SECONDS = 90
_MOST_UNPACKED = 128 * 2**20
_MOST_PARTS = 2000
_MOST_DEPTH = 3
_MOST_PDFS = 20
"""In an archive: each takes a process."""
_MOST_OF_SVG = 4 * 2**20
_SVG = "{http://www.w3.org/2000/svg}"
_OF_SVG = (_SVG, "{http://www.w3.org/1999/xlink}", "{http://www.w3.org/XML/1998/namespace}")

_IN_UTF8 = 0x800
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
"""What is raised of archives that are broken, have a password, or are packed in an unknown way."""

Clean = Callable[[bytes], bytes]

_VALUES = re.compile(
    rb"(\s(?:\w+:)?(?:author|initials|userName|userId|lastModifiedBy)="
    rb"|<(?:p:cmAuthor|p188:author)\b[^>]*?\sname=|<(?:\w+:)?person\b[^>]*?\sdisplayName=)(\"[^\"]*\"|'[^']*')"
)
"""Attributes that name a person."""
_PATHS = re.compile(
    rb"(\s(?:Target|url|odcFile|sourceFile)=)(\"(?:file:|[A-Za-z]:\\)[^\"]*\"|'(?:file:|[A-Za-z]:\\)[^']*')"
)
"""Attributes with the path of a file, in which the name of an account stands."""
_ELEMENTS = re.compile(
    rb"(<((?:\w+:)?(?:author|creator|initial-creator|printed-by|creator-initials|sender-initials|lastModifiedBy|Company"
    rb"|Manager|LastAuthor|Author|DisplayName|AccountId))(?:\s[^<>]*)?>)[^<]*(</\2>)"
)
_META = re.compile(rb"<office:meta>.*?</office:meta>", re.DOTALL)
_PROPERTIES = {
    "docProps/core.xml": b'<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
    b'core-properties"/>',
    "docProps/app.xml": b'<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
    b'extended-properties"/>',
    "docProps/custom.xml": b'<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
    b'custom-properties"/>',
}
_XML = (".xml", ".rels", ".vml", ".rdf")
_SIGNATURES = re.compile(r"_xmlsignatures/|META-INF/\w*signatures")


def clean_pdf(data: bytes) -> bytes:
    """Return a PDF without its metadata, written anew in a process of its own. Raises ValueError."""
    try:
        program = [sys.executable, "-I", str(_PROGRAM)]
        found = subprocess.run(program, input=data, capture_output=True, timeout=_SECONDS, check=True, env={})
    except subprocess.SubprocessError:
        raise ValueError("PDF") from None
    return found.stdout


def clean_archive(data: bytes, clean: Clean, depth: int = 0) -> bytes:
    """Return a ZIP whose files are cleaned: a document of Office or OpenDocument, or an archive. Raises ValueError, and
    what `clean` raises.
    """
    target = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(target, "w") as cleaned:
            names = set(archive.namelist())
            is_document = bool(names & {"[Content_Types].xml", "mimetype"})
            for one, content in _contents(archive):
                part = zipfile.ZipInfo(_name(one))
                part.compress_type = one.compress_type
                cleaned.writestr(part, _part(one.filename, content, clean, depth, is_document=is_document))
    except _BROKEN as error:
        raise ValueError(type(error).__name__) from None
    return target.getvalue()


def _name(part: zipfile.ZipInfo) -> str:
    """Return the name of a file in an archive: without a mark it is in UTF-8 (macOS), or as Windows writes Russian."""
    if part.flag_bits & _IN_UTF8 or part.filename.isascii():
        return part.filename
    written = part.filename.encode("cp437")
    try:
        return written.decode()
    except ValueError:
        return written.decode("cp866")


def _contents(archive: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, bytes]]:
    """Emit each file with its content. Raises ValueError for an archive that is too large."""
    parts = archive.infolist()
    if len(parts) > _MOST_PARTS or sum(one.file_size for one in parts) > _MOST_UNPACKED:
        raise ValueError("too large")
    pdfs = 0
    for one in parts:
        content = archive.read(one)
        pdfs += content.startswith(b"%PDF")
        if len(content) != one.file_size or pdfs > _MOST_PDFS:
            raise ValueError("too many")
        yield one, content


def _part(name: str, content: bytes, clean: Clean, depth: int, *, is_document: bool) -> bytes:
    if is_document and _SIGNATURES.match(name):
        raise ValueError("signature")
    if is_document and name.endswith(_XML):
        return _properties(name, content)
    if content.startswith(b"PK\x03\x04"):
        if depth == _MOST_DEPTH:
            raise ValueError("too deep")
        return clean_archive(content, clean, depth + 1)
    return clean(content)


def _properties(name: str, content: bytes) -> bytes:
    """Return a part of a document without names of people. Raises ValueError for one that cannot be read as text."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or b"manifest:encryption-data" in content:
        raise ValueError(name)
    if name in _PROPERTIES:
        return _PROPERTIES[name]
    for author in set(re.findall(rb"<author>([^<]+)</", content)):  # Excel writes the name into the words, too
        content = content.replace(b">" + author + b":", b">")
    content = _META.sub(b"<office:meta/>", content)
    content = _ELEMENTS.sub(rb"\1\3", content)
    return _PATHS.sub(rb'\1"about:blank"', _VALUES.sub(rb'\1"Author"', content))


def clean_svg(data: bytes, clean: Clean) -> bytes:
    """Return a drawing without comments, and with nothing but elements and attributes of SVG. Raises ValueError."""
    if len(data) > _MOST_OF_SVG or b"<!ENTITY" in data:
        raise ValueError("SVG")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError:
        raise ValueError("SVG") from None
    for parent in root.iter():
        for child in list(parent):
            if not child.tag.startswith(_SVG) or child.tag == f"{_SVG}metadata":
                parent.remove(child)
    for one in root.iter():
        one.attrib = {name: _of_svg(value, clean) for name, value in one.attrib.items() if _is_of_svg(name)}
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _is_of_svg(name: str) -> bool:
    return not name.startswith("{") or name.startswith(_OF_SVG)


def _of_svg(value: str, clean: Clean) -> str:
    """Return the value of an attribute with the picture in it cleaned, and without the name of a file."""
    if value.startswith("file:"):
        return ""
    head, found, picture = value.partition(";base64,")
    if not (found and head.startswith("data:")):
        return value
    return head + found + b64encode(clean(b64decode(picture))).decode()


ElementTree.register_namespace("svg", _SVG[1:-1])
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
