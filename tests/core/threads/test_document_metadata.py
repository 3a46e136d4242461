"""Who has written a document goes, its words stay: PDF, Office, OpenDocument, archives, drawings, voices."""

import io
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.comments import Comment
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link, Text
from pypdf.generic import DictionaryObject, NameObject, StreamObject, TextStringObject

from core.threads.metadata import MetadataUnreadable, without_metadata
from tests.core.threads.test_metadata import GREY, SECRET, photograph

MASHA = b"masha@home.example"


def pdf(password: str = "", author: bytes = MASHA, **files: bytes) -> bytes:
    """Return a PDF of one page with a photograph, a comment, a signature, and a file within."""
    writer, target = PdfWriter(), io.BytesIO()
    page = writer.add_blank_page(100, 100)
    writer.add_metadata({"/Author": author.decode(), "/Title": "Work"})
    about, picture = StreamObject(), StreamObject()
    about.set_data(b"<x:xmpmeta>" + author + b"</x:xmpmeta>")
    picture.set_data(photograph())
    picture[NameObject("/Filter")] = NameObject("/DCTDecode")
    writer.root_object[NameObject("/Metadata")] = about
    page[NameObject("/Picture")] = picture
    page[NameObject("/Sig")] = DictionaryObject(
        {NameObject("/ByteRange"): TextStringObject("0"), NameObject("/ContactInfo"): TextStringObject(author.decode())}
    )
    note = Text(text="Look here", rect=(0, 0, 9, 9))
    note[NameObject("/T")] = TextStringObject(author.decode())
    writer.add_annotation(0, note)
    writer.add_annotation(0, Link(rect=(0, 0, 9, 9), url="https://school.example"))
    for name, content in files.items():
        writer.add_attachment(name, content)
    if password:
        writer.encrypt(password)
    writer.write(target)
    return target.getvalue()


def test_a_pdf_keeps_its_pages_and_comments_but_not_who_has_made_them() -> None:
    given = pdf()
    cleaned = without_metadata(given)
    read = PdfReader(io.BytesIO(cleaned))
    assert (len(read.pages), read.metadata, read.xmp_metadata) == (1, None, None)
    notes = [one.get_object() for one in read.pages[0]["/Annots"]]  # type: ignore[attr-defined]
    assert [(one.get("/Contents"), one.get("/T")) for one in notes] == [("Look here", None), (None, None)]
    assert GREY[-40:] in cleaned
    assert [one["/A"]["/URI"] for one in notes[1:]] == ["https://school.example"]
    assert MASHA in given
    assert SECRET in given
    assert not [secret for secret in (MASHA, MASHA.decode().encode("utf-16-be")) if secret in cleaned]
    assert SECRET not in cleaned
    assert without_metadata(cleaned) == cleaned


@pytest.mark.parametrize("data", [pdf(a=MASHA), pdf("secret"), b"%PDF-1.7 broken"], ids=["file", "password", "broken"])
def test_a_pdf_that_cannot_be_cleaned_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataUnreadable):
        without_metadata(data)


def archive(files: Mapping[str, bytes], first: str = "") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        if first:
            written.writestr(zipfile.ZipInfo("mimetype"), first)
        for name, content in files.items():
            written.writestr(name, content)
        written.comment = MASHA
    return target.getvalue()


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        assert read.testzip() is None
        return {name: read.read(name) for name in read.namelist()}


TYPES = {"[Content_Types].xml": b'<Types><Default Extension="xml"/></Types>'}


def test_a_document_of_word_keeps_its_words_but_not_who_wrote_and_commented_them() -> None:
    word = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    changed = b'<w:ins w:id="1" w:author="%b"><w:t>Masha was here, @author</w:t></w:ins>'
    files = {
        "word/document.xml": b"<w:document " + word + b">" + changed % MASHA + b"</w:document>",
        "word/comments.xml": b"<w:comment w:author='%b' w:initials='%b' w:id='0'>why?</w:comment>" % (MASHA, MASHA),
        "word/people.xml": b'<w15:person w15:author="%b"><w15:presenceInfo w15:userId="S::%b"/>' % (MASHA, MASHA),
        "docProps/core.xml": b"<cp:coreProperties><dc:creator>" + MASHA + b"</dc:creator></cp:coreProperties>",
        "docProps/app.xml": b"<Properties><Company>" + MASHA + b"</Company></Properties>",
        "docProps/custom.xml": b"<Properties><property>" + MASHA + b"</property></Properties>",
        "word/_rels/settings.xml.rels": b'<Relationship Id="r" Target="file:///C:\\Users\\' + MASHA + b'\\a.dotm"/>',
        "word/media/image1.jpeg": photograph(),
        "word/embeddings/table.xlsx": archive({**TYPES, "docProps/core.xml": MASHA}),
    }
    found = unpacked(without_metadata(archive({**TYPES, **files})))
    assert list(found) == [*TYPES, *files]
    assert b"<w:t>Masha was here, @author</w:t>" in found["word/document.xml"]
    assert found["word/comments.xml"].endswith(b">why?</w:comment>")
    assert MASHA not in b"".join(found.values())
    assert unpacked(found["word/embeddings/table.xlsx"])["docProps/core.xml"].startswith(b"<cp:coreProperties")
    assert SECRET not in found["word/media/image1.jpeg"]


def test_a_workbook_can_still_be_read_and_names_nobody() -> None:
    book, target = Workbook(), io.BytesIO()
    sheet = book.worksheets[0]
    sheet["A1"] = "Marks"
    sheet["A1"].comment = Comment(f"{MASHA.decode()}:\nwhy?", MASHA.decode())
    book.properties.creator = book.properties.lastModifiedBy = MASHA.decode()
    book.save(target)
    assert MASHA in b"".join(unpacked(target.getvalue()).values())
    cleaned = without_metadata(target.getvalue())
    assert MASHA not in b"".join(unpacked(cleaned).values())
    read = load_workbook(io.BytesIO(cleaned)).worksheets[0]["A1"]
    assert (read.value, read.comment and read.comment.text.strip()) == ("Marks", "why?")


def test_slides_and_open_documents_name_nobody() -> None:
    slides = {
        "ppt/commentAuthors.xml": b'<p:cmAuthorLst><p:cmAuthor id="0" name="%b" initials="M"/>' % MASHA,
        "ppt/authors.xml": b'<p188:author id="{1}" name="%b" userId="%b"/>' % (MASHA, MASHA),
        "ppt/slides/slide1.xml": b'<p:cNvPr id="2" name="Title 1"/><a:t>Hello</a:t>',
        "xl/persons/person.xml": b'<personList><person displayName="%b" userId="%b"/></personList>' % (MASHA, MASHA),
        "xl/tables/table1.xml": b'<table name="T" displayName="Marks"/>',
    }
    found = unpacked(without_metadata(archive({**TYPES, **slides})))
    assert MASHA not in b"".join(found.values())
    assert found["ppt/slides/slide1.xml"] == slides["ppt/slides/slide1.xml"]
    assert found["xl/tables/table1.xml"] == slides["xl/tables/table1.xml"]
    text = {
        "content.xml": b"<text:p>Hello<office:annotation><dc:creator>%b</dc:creator></office:annotation></text:p>"
        % MASHA,
        "meta.xml": b"<office:document-meta><office:meta>\n%b</office:meta></office:document-meta>" % MASHA,
    }
    given = archive(text, "application/vnd.oasis.opendocument.text")
    found = unpacked(without_metadata(given))
    assert list(found) == ["mimetype", "content.xml", "meta.xml"]
    assert MASHA not in b"".join(found.values())
    assert b"<text:p>Hello" in found["content.xml"]


def test_the_files_of_an_archive_are_cleaned_and_keep_their_names() -> None:
    inner = archive({"photo.jpg": photograph(), "ответ.txt": b"forty-two"})
    found = unpacked(without_metadata(archive({"work/": b"", "inner.zip": inner})))
    assert list(found) == ["work/", "inner.zip"]
    nested = unpacked(found["inner.zip"])
    assert (list(nested), nested["ответ.txt"], SECRET in nested["photo.jpg"]) == (
        ["photo.jpg", "ответ.txt"],
        b"forty-two",
        False,
    )


def test_the_names_in_an_archive_of_windows_stay_russian() -> None:
    given = archive({"xxxxxx.txt": b"1", "yyyyyyyyyyyy.txt": b"2"})
    given = given.replace(b"xxxxxx", "ответы".encode("cp866")).replace(b"yyyyyyyyyyyy", "работа".encode())
    assert unpacked(without_metadata(given)) == {"ответы.txt": b"1", "работа.txt": b"2"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: archive({"a.doc": b"\xd0\xcf\x11\xe0"}),
        lambda: archive({**TYPES, "_xmlsignatures/sig1.xml": MASHA}),
        lambda: archive({**TYPES, "word/document.xml": "<w:t/>".encode("utf-16")}),
        lambda: archive(
            {"META-INF/manifest.xml": b"<manifest:encryption-data/>"}, "application/vnd.oasis.opendocument.text"
        ),
        lambda: archive({"1": archive({"2": archive({"3": archive({"4": archive({"5": b"5"})})})})}),
        lambda: archive({str(number): b"" for number in range(2001)}),
        lambda: archive({"zeros": bytes(129 * 2**20)}),
        lambda: archive({str(number): b"%PDF-1.7" for number in range(21)}),
        lambda: archive({"a": b"a"})[:-30],
        lambda: archive({"a": b"a" * 99}).replace(b"KL\xa4", b"KL\xa5"),
    ],
    ids=["doc", "signature", "utf-16", "encrypted", "deep", "many", "large", "pdfs", "broken", "damaged"],
)
def test_an_archive_in_which_something_cannot_be_cleaned_is_refused(make: Callable[[], bytes]) -> None:
    """Made by the test: every worker collects all tests, and the large archive alone takes it half a second."""
    with pytest.raises(MetadataUnreadable):
        without_metadata(make())


def test_a_drawing_keeps_what_is_shown() -> None:
    picture = b64encode(photograph()).decode()
    drawing = (
        "<?xml version='1.0'?><!-- masha --><svg xmlns='http://www.w3.org/2000/svg' xmlns:s='http://sodipodi.example'"
        " xmlns:xlink='http://www.w3.org/1999/xlink' s:docname='/home/masha/a.svg'><metadata>masha</metadata>"
        "<s:view>masha</s:view><text x='1'>Hello</text><image xlink:href='file:///home/masha/a.png'/>"
        f"<image href='data:image/jpeg;base64,{picture}'/></svg>"
    ).encode()
    cleaned = without_metadata(drawing)
    assert b"masha" not in cleaned
    assert b'x="1">Hello<' in cleaned
    shown = b64decode(cleaned.partition(b"base64,")[2].partition(b'"')[0])
    assert shown == without_metadata(photograph())
    for wrong in (
        drawing[:-3],
        b"<!DOCTYPE svg [<!ENTITY a 'masha'>]>" + drawing,
        drawing.replace(b"base64,", b"base64,A"),
    ):
        with pytest.raises(MetadataUnreadable):
            without_metadata(wrong)


def ogg(head: bytes, comments: bytes, sound: bytes = b"sound") -> bytes:
    """Return a stream with three packets; one that does not fit into a page goes on in the next."""
    pages = [(2, head, [len(head)])]
    sizes = [255] * (len(comments) // 255) + [len(comments) % 255]
    for place in range(0, len(sizes), 255):
        some = sizes[place : place + 255]
        pages.append((1 if place else 0, comments[255 * place : 255 * place + sum(some)], some))
    pages.append((4, sound, [len(sound)]))
    written = b""
    for number, (flags, body, lengths) in enumerate(pages):
        start = b"OggS\0" + bytes([flags]) + bytes(8) + b"serl" + number.to_bytes(4, "little")
        written += with_checksum(start + bytes(4) + bytes([len(lengths), *lengths]) + body)
    return written


def with_checksum(page: bytes) -> bytes:
    """Divide by the polynomial bit by bit, as RFC 3533 describes it."""
    page, code = page[:22] + bytes(4) + page[26:], 0
    for byte in page:
        code ^= byte << 24
        for _ in range(8):
            code = (code << 1 ^ (0x104C11DB7 if code >> 31 else 0)) & 0xFFFFFFFF
    return page[:22] + code.to_bytes(4, "little") + page[26:]


@pytest.mark.parametrize(
    ("head", "mark", "ending"),
    [(b"OpusHead\x01\x01", b"OpusTags", b""), (b"\x01vorbis\0\0", b"\x03vorbis", b"\x01")],
    ids=["opus", "vorbis"],
)
@pytest.mark.parametrize("size", [1, 300, 8_000])
def test_a_voice_keeps_its_pages_and_loses_its_comments(head: bytes, mark: bytes, ending: bytes, size: int) -> None:
    comment = b"ARTIST=" + MASHA * size
    comments = mark + b"\x03\0\0\0lib" + b"\x01\0\0\0" + len(comment).to_bytes(4, "little") + comment + ending
    blank = len(comments) - len(mark) - 8 - len(ending)
    expected = mark + blank.to_bytes(4, "little") + b" " * blank + bytes(4) + ending
    assert without_metadata(ogg(head, comments)) == ogg(head, expected)


@pytest.mark.parametrize("data", [ogg(b"Speex   ", MASHA), ogg(b"OpusHead", MASHA), ogg(b"OpusHead", b"OpusTags")[:-3]])
def test_a_sound_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataUnreadable):
        without_metadata(data)
