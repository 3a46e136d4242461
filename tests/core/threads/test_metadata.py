"""What a camera writes into a file about its owner is taken out; the picture stays as it is."""

import zlib
from base64 import b64decode

import pytest

from core.threads.metadata import MetadataUnreadable, without_metadata

SECRET = b"+79991234567"
GREY = b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P"
    "/wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AVN//2Q=="
)
"""A JPEG of one grey dot."""


def exif(orientation: int) -> bytes:
    """Return a segment with the orientation and the name of an owner, in the order of bytes of a PC."""
    entries = b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation]) + b"\0\0\0"
    owner = b"\x3b\x01\x02\0" + len(SECRET).to_bytes(4, "little") + b"\x26\0\0\0"
    body = b"Exif\0\0II*\0\x08\0\0\0\x02\0" + entries + owner + b"\0\0\0\0" + SECRET
    return b"\xff\xe1" + (len(body) + 2).to_bytes(2) + body


def photograph(orientation: int = 6) -> bytes:
    """Return a JPEG as a telephone makes it: with EXIF, a comment, and a film behind the picture."""
    comment = b"\xff\xfe" + (len(SECRET) + 2).to_bytes(2) + SECRET
    return GREY[:2] + exif(orientation) + comment + GREY[2:] + b"ftyp" + SECRET


def chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def box(kind: bytes, body: bytes) -> bytes:
    return (len(body) + 8).to_bytes(4) + kind + body


def riff(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)


def test_a_photograph_keeps_its_dots_and_how_it_is_turned_and_nothing_else() -> None:
    cleaned = without_metadata(photograph())
    assert cleaned.startswith(GREY[:2] + b"\xff\xe1")
    assert cleaned.endswith(GREY[2:])
    assert SECRET not in cleaned
    assert without_metadata(photograph(orientation=1)) == GREY
    assert without_metadata(cleaned) == cleaned


def test_a_png_keeps_the_chunks_of_its_picture() -> None:
    head, dots = chunk(b"IHDR", bytes(13)), chunk(b"IDAT", zlib.compress(b"\0\0"))
    said = [chunk(kind, SECRET) for kind in (b"tEXt", b"iTXt", b"zTXt", b"eXIf", b"tIME", b"prVt")]
    plain = b"\x89PNG\r\n\x1a\n" + head + dots + chunk(b"IEND", b"")
    assert without_metadata(plain[:-12] + b"".join(said) + chunk(b"IEND", b"") + SECRET) == plain


def test_a_gif_keeps_its_pictures_and_how_often_they_are_shown() -> None:
    head = b"GIF89a" + b"\1\0\1\0\x80\0\0" + b"\0\0\0\xff\xff\xff"
    again = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    picture = b"\x21\xf9\x04\0\0\0\0\0" + b"\x2c\0\0\0\0\1\0\1\0\0\x02\x02\x44\x01\0"
    size = bytes([len(SECRET)])
    said = b"\x21\xfe" + size + SECRET + b"\0" + b"\x21\xff\x0bXMP DataXMP" + size + SECRET + b"\0"
    assert without_metadata(head + again + said + picture + b"\x3b" + SECRET) == head + again + picture + b"\x3b"


def test_a_webp_keeps_its_picture_and_says_that_nothing_else_is_there() -> None:
    picture, flags = riff(b"VP8L", b"dots!"), b"\x1c" + bytes(9)
    body = b"WEBP" + riff(b"VP8X", flags) + picture + riff(b"EXIF", SECRET) + riff(b"XMP ", SECRET)
    kept = b"WEBP" + riff(b"VP8X", b"\x10" + bytes(9)) + picture
    given = b"RIFF" + len(body).to_bytes(4, "little") + body
    assert without_metadata(given + SECRET) == b"RIFF" + len(kept).to_bytes(4, "little") + kept


def test_a_video_keeps_each_byte_of_its_pictures_in_its_place() -> None:
    times = box(b"mvhd", bytes(4) + b"madetime" + bytes(88))
    moov = box(b"moov", times + box(b"trak", box(b"udta", SECRET)) + box(b"meta", SECRET))
    video = box(b"ftyp", b"isom\0\0\0\0") + moov + box(b"mdat", b"pictures") + box(b"uuid", SECRET)
    cleaned = without_metadata(video)
    assert SECRET not in cleaned
    assert b"madetime" not in cleaned
    assert len(cleaned) == len(video)
    assert cleaned.index(b"pictures") == video.index(b"pictures")


OTHER_TEXTS = ("Ёж;5\t\r\n\f".encode("cp1251"), "Ёж".encode("utf-16"), "Ёж".encode("koi8-r"), "Ёж".encode("cp866"))


def test_a_sound_loses_its_tags_and_a_text_stays_as_it_is() -> None:
    assert without_metadata(b"ID3\x04\0\0\0\0\0\x0c" + SECRET + b"\xff\xfbsound") == b"\xff\xfbsound"
    twice = b"ID3\x04\0\0\0\0\0\x01xID3\x04\0\0\0\0\0\x0c" + SECRET + b"\xff\xfbsound"
    assert without_metadata(twice + b"TAG" + SECRET.ljust(125, b"\0")) == b"\xff\xfbsound"
    tag = b"x" * 20 + SECRET
    foot = b"APETAGEX" + (2000).to_bytes(4, "little") + (len(tag) + 32).to_bytes(4, "little") + bytes(16)
    head = foot[:20] + b"\0\0\0\xa0" + foot[24:]
    assert without_metadata(b"\xff\xfbsound" + tag + foot) == b"\xff\xfbsound"
    assert without_metadata(b"\xff\xfasound" + head + tag + foot[:20] + head[20:]) == b"\xff\xfasound"
    for text in (
        b"The free lunch",
        b"FORMULA: 1\n\n",
        b"<p>To: you</p>",
        b"caffeine",
        b"",
        b"To: you\n\nHello",
        *OTHER_TEXTS,
    ):
        assert without_metadata(text) == text


def riff_chunk(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2)


def test_a_wav_keeps_the_chunks_that_are_heard() -> None:
    heard = riff_chunk(b"fmt ", b"f" * 16) + riff_chunk(b"data", b"odd")
    body = b"WAVE" + heard[:24] + riff_chunk(b"LIST", b"INFOIART" + SECRET) + heard[24:]
    assert without_metadata(riff_chunk(b"RIFF", body)) == riff_chunk(b"RIFF", b"WAVE" + heard)


def test_a_flac_keeps_each_byte_of_its_sound_in_its_place() -> None:
    stream, tags = b"\0\0\0\x22" + b"s" * 34, b"\x84" + len(SECRET).to_bytes(3)
    cleaned = without_metadata(b"fLaC" + stream + tags + SECRET + b"\xff\xf8sound")
    assert cleaned == b"fLaC" + stream + b"\x81" + tags[1:] + bytes(len(SECRET)) + b"\xff\xf8sound"


@pytest.mark.parametrize(
    "data",
    [
        *(photograph()[:size] for size in (3, 20, 60, 100)),
        b"\x89PNG\r\n\x1a\n" + b"\xff" * 8,
        b"GIF89a" + bytes(7),
        b"RIFF\xff\xff\xff\x00WEBPVP8X",
        box(b"ftyp", b"heic\0\0\0\0"),
        box(b"ftyp", b"isom\0\0\0\0") + b"\0\0\0\x02moov",
        b"II*\0raw",
        b"RIFF\0\0\0\0AVI LIST",
        b"RIFF\0\0\0\0WAVEdata\xff\0\0\0",
        b"fLaC\x04\0\0\xff",
        b"\x1a\x45\xdf\xa3webm",
        b"BEGIN:VCARD\r\nTEL:+79",
        b"BEGIN:VCALENDAR\r\nORGANIZER",
        b"\xef\xbb\xbf\r\nbegin:vcard\r\nTEL:+79",
        b"From: M <m@home.example>\r\nSubject: Hello\r\n to all\r\n\r\nHello",
        b"{\\rtf1{\\info{\\author Masha}}}",
        b"<html><head><meta name='Author' content='Masha'>",
        b"<?xml version='1.0'?><office:document><dc:creator>Masha</dc:creator>",
        b"\xff\xfbsoundLYRICSBEGINMashaLYRICS200",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1Masha",
        b"%!PS-Adobe-3.0\n%%For: Masha",
        bytes(257) + b"ustar\x0000masha",
        b"FORM\0\0\0\x04AIFFAUTH",
        b"AC1032\0\0\0\0LASTSAVEDBYMasha",
        b"AT&TFORM\0\0\0\x20DJVUANTaMasha",
        b"MZ\x90\0\x03CompanyName\0Masha",
        b"SQLite format 3\0Masha",
        *(b"\x1f\x8b\x08", b"Rar!\x1a\x07", b"7z\xbc\xaf\x27\x1c", b"\0\0\0\x0cjP  \r\n"),
    ],
)
def test_a_picture_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataUnreadable):
        without_metadata(data)
