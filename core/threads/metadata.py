"""Takes out of pictures, videos, sounds and documents what a camera or a program has written about its owner: place,
time, device, names.

The pixels and sounds stay as they are: nothing is decoded. Of EXIF only the orientation stays, without which a
photograph lies on its side. Sources: ITU T.81 (JPEG), PNG (W3C), GIF89a, the container of WebP, ISO/IEC 14496-12 (MP4),
RFC 9639 (FLAC), RIFF (Microsoft, IBM), ID3, APEv2. Ogg: `ogg`; documents and archives: `documents`.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from core.threads.documents import clean_archive, clean_pdf, clean_svg
from core.threads.ogg import without_comments

_BOXES = {b"moov", b"trak", b"mdia"}
"""Boxes of MP4 whose inner boxes are looked at."""
_ABOUT = {b"udta", b"meta", b"uuid", b"iods"}
"""Boxes that say something of the file."""
_PNG = b"\x89PNG\r\n\x1a\n"
_OF_PNG = {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"pHYs"} | {
    b"acTL",
    b"fcTL",
    b"fdAT",
}
_OF_WEBP = {b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"ANMF", b"ALPH"}
_EXIF_AND_XMP = 0b1100
"""Flags in VP8X: there is EXIF, there is XMP."""
_ORIENTATION = 0x0112
_BYTES_OF_ID3V1 = 128
_BYTES_OF_APE = 32
"""Of the head and of the foot of a tag."""
_OF_FLAC = {0, 1, 3, 5}
"""Blocks of FLAC that say how it is played: stream, padding, seek points, cue sheet."""
_PADDING = 1


class MetadataUnreadable(Exception):
    """The metadata of a file cannot be taken out: it is broken, or of an unknown form."""


def without_metadata(data: bytes) -> bytes:
    """Return a file without its metadata; a text as it is. Raises MetadataUnreadable, also for an unknown form."""
    if data.startswith(_UNKNOWN) or any(data.startswith(mark, place) for place, mark in _UNKNOWN_WITHIN):
        raise MetadataUnreadable("unknown form")
    if _UNKNOWN_TEXT.match(data):
        raise MetadataUnreadable("text with addresses")
    try:
        return _clean_of(data)(data)
    except (IndexError, ValueError) as error:
        raise MetadataUnreadable(type(error).__name__) from None


def _clean_of(data: bytes) -> Callable[[bytes], bytes]:
    """Return the function that removes the metadata of a file. Raises ValueError for a document that names somebody,
    and for a form that is not known: a drawing of AutoCAD, a program or a DjVu has the name of its author, too.
    """
    for place, mark, clean in _FORMS:
        if data.startswith(mark, place):
            return clean
    if b"%PDF-" in data[:_HEAD]:
        return clean_pdf
    if _PAGE.match(data):
        if b"<svg" in data[:_HEAD] or b":svg" in data[:_HEAD]:
            return lambda drawing: clean_svg(drawing, without_metadata)
        if _AUTHOR.search(data):
            raise ValueError
    if _BINARY.search(data) and not data.startswith(_WIDE_TEXT):
        raise ValueError
    return bytes


def _jpeg(data: bytes) -> Iterator[bytes]:
    """Yield the segments that the picture needs: it ends at its end mark, whatever follows."""
    yield data[:2]
    if orientation := _orientation(data):
        yield _exif(orientation)
    place = 2
    while (marker := _marker(data, place)) != 0xD9:
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4])
        if not place + 4 <= end <= len(data):
            raise ValueError
        yield _needed(marker, data[place:end])
        place = _end_of_scan(data, end) if marker == 0xDA else end
        yield data[end:place]
    yield b"\xff\xd9"


def _marker(data: bytes, place: int) -> int:
    if data[place] != 0xFF or data[place + 1] == 0xFF:
        raise ValueError
    return data[place + 1]


def _needed(marker: int, segment: bytes) -> bytes:
    """Return a segment if the picture needs it: of those of applications the head of JFIF without its preview, and the
    colours of Adobe.
    """
    if marker == 0xE0 and segment[4:9] == b"JFIF\0":
        return b"\xff\xe0\x00\x10" + segment[4:16] + b"\0\0"
    is_said = 0xE0 <= marker <= 0xEF or marker == 0xFE
    return segment if not is_said or (marker == 0xEE and segment[4:9] == b"Adobe") else b""


def _end_of_scan(data: bytes, place: int) -> int:
    """Return where the coded picture ends: at a mark that is no restart and no stuffed byte."""
    while True:
        place = data.index(b"\xff", place)
        if data[place + 1] == 0 or 0xD0 <= data[place + 1] <= 0xD7:
            place += 2
        elif data[place + 1] == 0xFF:
            place += 1
        else:
            return place


def _orientation(data: bytes) -> int:
    """Return how the picture of a JPEG is turned, 2 to 8; 0 if it is not, or nothing says so."""
    place = 2
    while data[place] == 0xFF and data[place + 1] not in (0xDA, 0xD9):
        size = int.from_bytes(data[place + 2 : place + 4])
        if data[place + 1] == 0xE1 and data[place + 4 : place + 10] == b"Exif\0\0":
            return _orientation_in(data[place + 10 : place + 2 + size])
        place += 2 + max(size, 2)
    return 0


def _orientation_in(tiff: bytes) -> int:
    is_little = tiff[:2] == b"II"

    def number(place: int, size: int) -> int:
        return int.from_bytes(tiff[place : place + size], "little" if is_little else "big")

    first = number(4, 4)
    for entry in range(first + 2, first + 2 + 12 * min(number(first, 2), 100), 12):
        if number(entry, 2) == _ORIENTATION:
            found = number(entry + 8, 2)
            return found if 2 <= found <= 8 else 0
    return 0


def _exif(orientation: int) -> bytes:
    """Return a segment with the orientation alone."""
    tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + b"\0\0\0\0\0\0"
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + (len(body) + 2).to_bytes(2) + body


def _png(data: bytes) -> Iterator[bytes]:
    yield _PNG
    place = len(_PNG)
    while True:
        end = place + 12 + int.from_bytes(data[place : place + 4])
        kind = data[place + 4 : place + 8]
        if end > len(data):
            raise ValueError
        if kind in _OF_PNG:
            yield data[place:end]
        if kind == b"IEND":
            return
        place = end


def _gif(data: bytes) -> Iterator[bytes]:
    """Yield the blocks of the pictures, and how often they are repeated; no comments, texts or other extensions."""
    place = 13 + _colours(data[10])
    yield data[:place]
    while data[place] != 0x3B:
        start = place
        if data[place] == 0x21:
            place += 2
            is_shown = data[start + 1] == 0xF9 or data[place + 1 : place + 12] == b"NETSCAPE2.0"
        elif data[place] == 0x2C:
            place += 10 + _colours(data[place + 9]) + 1
            is_shown = True
        else:
            raise ValueError
        while data[place]:
            place += 1 + data[place]
        place += 1
        if is_shown:
            yield data[start:place]
    yield b"\x3b"


def _colours(flags: int) -> int:
    """Return the bytes of the table of colours that the flags announce."""
    return int(3 * 2 ** ((flags & 7) + 1)) if flags & 0x80 else 0


def _webp(data: bytes) -> bytes:
    chunks, place = [], 12
    end = 8 + int.from_bytes(data[4:8], "little")
    if end > len(data):
        raise ValueError
    while place < end:
        kind, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        after = place + 8 + size + size % 2
        if kind == b"VP8X":
            chunks.append(data[place : place + 8] + bytes([data[place + 8] & ~_EXIF_AND_XMP]) + data[place + 9 : after])
        elif kind in _OF_WEBP:
            chunks.append(data[place:after])
        place = after
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def _mp4(data: bytes) -> bytes:
    """Return a video or sound with zeros in place of what is said of it, so that everything else keeps its place.
    Pictures in such a container (HEIC, AVIF) cannot be taken apart without moving.
    """
    brand = data[8:12]
    if brand[:3] in (b"hei", b"hev", b"avi", b"mif", b"msf", b"crx"):
        raise MetadataUnreadable(brand.decode(errors="replace"))
    cleaned = bytearray(data)
    _clear(cleaned, 0, len(cleaned))
    return bytes(cleaned)


def _clear(data: bytearray, place: int, end: int) -> None:
    while place < end:
        size, kind, head = int.from_bytes(data[place : place + 4]), bytes(data[place + 4 : place + 8]), 8
        if size == 1:
            size, head = int.from_bytes(data[place + 8 : place + 16]), 16
        size = size or end - place
        if size < head or place + size > end:
            raise ValueError
        if kind in _BOXES:
            _clear(data, place + head, place + size)
        elif kind in _ABOUT:
            data[place + 4 : place + 8] = b"free"
            data[place + head : place + size] = bytes(size - head)
        elif kind in (b"mvhd", b"tkhd", b"mdhd"):  # when it was made and changed
            times = 16 if data[place + head] == 1 else 8
            data[place + head + 4 : place + head + 4 + times] = bytes(times)
        place += size


def _mp3(data: bytes) -> bytes:
    """Return a sound without the tags before and behind it: the size of those before has seven bits in each byte."""
    while data.startswith(b"ID3"):
        data = data[10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9]) :]
    if data[-_BYTES_OF_ID3V1:].startswith(b"TAG"):
        data = data[:-_BYTES_OF_ID3V1]
    if data.endswith(b"LYRICS200"):
        raise ValueError
    if data[-_BYTES_OF_APE:].startswith(b"APETAGEX"):
        size, flags = (int.from_bytes(data[place : place + 4], "little") for place in (-20, -12))
        data = data[: -size - (_BYTES_OF_APE if flags >> 31 else 0)]
    return data


def _wav(data: bytes) -> bytes:
    """Return a WAV file with only the chunks that hold its sound."""
    chunks, place = [], 12
    while place + 8 <= len(data):
        after = place + 8 + int.from_bytes(data[place + 4 : place + 8], "little")
        if after > len(data):
            raise ValueError
        after += after % 2
        if data[place : place + 4] in (b"fmt ", b"fact", b"data"):
            chunks.append(data[place:after])
        place = after
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def _flac(data: bytes) -> bytes:
    """Return a sound with zeros in place of its comments, pictures and blocks of programs."""
    cleaned, place, is_last = bytearray(data), 4, False
    while not is_last:
        is_last, kind = bool(data[place] & 0x80), data[place] & 0x7F
        after = place + 4 + int.from_bytes(data[place + 1 : place + 4])
        if after > len(data):
            raise ValueError
        if kind not in _OF_FLAC:
            cleaned[place] = data[place] & 0x80 | _PADDING
            cleaned[place + 4 : after] = bytes(after - place - 4)
        place = after
    return bytes(cleaned)


_FORMS: Sequence[tuple[int, bytes, Callable[[bytes], bytes]]] = (
    (0, b"\xff\xd8\xff", lambda data: b"".join(_jpeg(data))),
    (0, _PNG, lambda data: b"".join(_png(data))),
    (0, b"GIF8", lambda data: b"".join(_gif(data))),
    (8, b"WEBP", _webp),
    (8, b"WAVE", _wav),
    *((4, box, _mp4) for box in (b"ftyp", b"moov", b"mdat")),
    (0, b"\0\0\0\x08wide", _mp4),
    (0, b"ID3", _mp3),
    *((0, b"\xff" + bytes([version]), _mp3) for version in b"\xfb\xfa\xf3\xf2\xe3\xe2\xf1\xf9"),
    (0, b"fLaC", _flac),
    (0, b"OggS", without_comments),
    (0, b"PK\x03\x04", lambda data: clean_archive(data, without_metadata)),
)
"""The offset of a mark in a file, the mark, and the function that removes the metadata."""
_UNKNOWN = (
    *(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"FUJIFILM", b"\0\0\0\x0cJXL ", b"\0\0\0\x0cjP  ", b"\xff\x0a", b"8BPS"),
    *(b"\x1aE\xdf\xa3", b"\x30\x26\xb2\x75", b"caff\0", b"APETAGEX"),
    *(b"\xd0\xcf\x11\xe0", b"%!PS", b"\xc5\xd0\xd3\xc6", b"L\0\0\0\x01\x14\x02\0"),
    *(b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd"),
)
"""First bytes of files whose metadata stay unread: TIFF, raw pictures, JPEG XL, JPEG 2000, Photoshop; Matroska and
WebM, Windows Media, CAF; the older documents of Office and mails of Outlook, PostScript, shortcuts of Windows; archives
but ZIP."""
_UNKNOWN_WITHIN = ((8, b"AVI "), (8, b"AIFF"), (8, b"AIFC"), (257, b"ustar"))
"""AVI, AIFF, and tar with the name of its owner."""
_UNKNOWN_TEXT = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:BEGIN:V(?:CARD|CALENDAR)|(?:Received|Return-Path|Delivered-To|DKIM-Signature|ARC-Seal"
    rb"|X-[\w-]+|From|To|Subject|Date|Message-ID|MIME-Version):[^\n]*\n(?:[ \t][^\n]*\n|[\w-]+:[^\n]*\n)+\r?\n"
    rb"|\{\\rtf(?=.*\\(?:info|revtbl|atnauthor)\b))",
    re.IGNORECASE | re.DOTALL,
)
"""Cards of people and of meetings, mails with their header, and RTF that names its author."""
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has, whatever its alphabet."""
_WIDE_TEXT = (b"\xff\xfe", b"\xfe\xff")
"""How a text in UTF-16 begins."""
_HEAD = 1024
_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")
_AUTHOR = re.compile(
    rb"<(?:dc:creator|meta:initial-creator|o:author|o:lastauthor)>|<meta\s[^>]*name=[\"']?author",
    re.IGNORECASE,
)
"""What Word, LibreOffice and others write into a page or an XML file."""
