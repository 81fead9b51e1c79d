from __future__ import annotations

import errno
import io
import os
from types import SimpleNamespace

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import AbstractFileSystem
from support.tables import read, write
from upath import UPath

from airflow_provider_sms.exceptions import InputError, SourceError, SourceUnavailableError
from airflow_provider_sms.recipients.paths import require_parquet_name, without_secrets
from airflow_provider_sms.recipients.sources import open_source


@pytest.fixture
def memory():
    """Give a filesystem that is not the local one, empty."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


def remember(filesystem, path, **columns):
    with filesystem.open(path, "wb") as file:
        pq.write_table(pa.table(columns), file)


def test_a_relative_path(tmp_path, monkeypatch):
    """A relative path is one below the working directory."""
    write(tmp_path / "a.parquet", a=[1])
    monkeypatch.chdir(tmp_path)
    assert read("a.parquet") == {"a": [1]}


def test_a_directory(tmp_path):
    """A directory is all files in it, at any depth, sorted by path; a name without an ending is taken for Parquet."""
    write(tmp_path / "b" / "2.parquet", a=[3])
    write(tmp_path / "a.PARQUET", a=[1])
    write(tmp_path / "b" / "1.pq", a=[2])
    write(tmp_path / "c" / "part-0", a=[4])
    source = open_source(str(tmp_path))
    assert source.description == f"{tmp_path} (4 Parquet files)"
    assert read(tmp_path) == read(f"{tmp_path}/") == {"a": [1, 2, 3, 4]}


def test_what_a_directory_holds_beside_data(tmp_path):
    """Markers, hidden and temporary files, and directories of these are passed over."""
    write(tmp_path / "a.parquet", a=[1])
    for name in ("_SUCCESS", ".a.parquet.crc", "_temporary/0/b.parquet", ".staging/c.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert read(tmp_path) == {"a": [1]}


@pytest.mark.parametrize(
    "other", ["june.xlsx", "july.json", "may.csv.xz", "old/april.CSV.bak", "part-0.c000", "README.md"]
)
def test_a_directory_with_a_file_that_is_not_read_is_refused(tmp_path, other):
    """Passed over, its people would be left out, or texted although they are on a list, and nobody would notice."""
    write(tmp_path / "a.parquet", a=[1])
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).write_bytes(b"x")
    with pytest.raises(SourceError, match=rf"{tmp_path / other}: the ending of its name is none that is read"):
        read(tmp_path)
    assert read(f"{tmp_path}/*.parquet") == {"a": [1]}


@pytest.mark.parametrize(("log", "kind"), [("_delta_log/0.json", "Delta Lake"), (".hoodie/hoodie.properties", "Hudi")])
def test_a_table_with_a_log_is_refused(tmp_path, log, kind):
    """Beside the present rows lie those that were deleted or changed, such as of people who have opted out."""
    for name in ("people/day=1/a.parquet", "people/day=1/b.parquet", f"people/{log}"):
        write(tmp_path / name, a=[1])
    for source in (tmp_path / "people", tmp_path, f"{tmp_path}/p*", f"{tmp_path}/people/*/*.parquet"):
        with pytest.raises(SourceError, match=rf"the directory is a {kind} table\. Its files also hold rows that"):
            read(source)


@pytest.mark.parametrize("source", ["b.csv", "*", ".", "notes.bin"])
def test_a_pipe_is_no_file(tmp_path, source):
    """To open one waits for a writer, and it could be read only once; a device is the same."""
    for name in ("b.csv", "notes.bin"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(SourceError, match=r"is a pipe, a socket or a device\. Write its rows to a file"):
        open_source(str(tmp_path / source))


def test_a_link_to_nowhere_is_named(tmp_path):
    """Its people would be left out."""
    write(tmp_path / "a.parquet", a=[1])
    (tmp_path / "b.parquet").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"/b\.parquet: there is no such file"):
        read(tmp_path)


def test_a_link_to_a_directory_is_not_passed_over(tmp_path):
    """Its people would be left out; a glob that matches the link reads them."""
    write(tmp_path / "july" / "people.parquet", a=[1])
    (tmp_path / "months").mkdir()
    (tmp_path / "months" / "latest").symlink_to(tmp_path / "july")
    with pytest.raises(SourceError, match="months/latest, a link to another directory, which is not followed"):
        open_source(str(tmp_path / "months"))
    assert read(tmp_path / "months" / "*") == {"a": [1]}
    assert read(tmp_path / "months" / "latest") == {"a": [1]}


@pytest.mark.parametrize("glob", ["*/*.parquet", "m*/**/*.parquet", "*/*", "*", "*/*.csv"])
def test_a_glob_follows_the_links_that_it_matches(tmp_path, glob):
    """People behind a link to a directory would be left out, or texted although they are on a list there."""
    write(tmp_path / "elsewhere" / "july.parquet", a=[1])
    write(tmp_path / "people" / "may" / "a.parquet", a=[2])
    (tmp_path / "people" / "may" / "b.csv").write_text("a\n2\n")
    for link in ("march", "_hidden"):
        (tmp_path / "people" / link).symlink_to(tmp_path / "elsewhere")
    if glob == "*/*.csv":
        assert read(tmp_path / "people" / glob) == {"a": ["2"]}
        return
    (tmp_path / "people" / "may" / "b.csv").unlink()
    assert read(tmp_path / "people" / glob) == {"a": [1, 2]}


def test_a_glob_of_any_depth_follows_no_link(tmp_path):
    """It might come back to where it began."""
    write(tmp_path / "may" / "a.parquet", a=[2])
    (tmp_path / "march").symlink_to(tmp_path)
    with pytest.raises(SourceError, match=r"holds .*/march, a link to another directory, which is not followed\. Name"):
        read(tmp_path / "**" / "*.parquet")


@pytest.fixture
def unlisted(monkeypatch):
    """Let the system refuse to list a folder, as it does for another user's; the tests may run as root."""
    scandir = os.scandir

    def unlisted(folder, number=errno.EACCES):
        folder.mkdir(parents=True, exist_ok=True)

        def refuse(path="."):
            if os.fspath(path) == str(folder):
                raise OSError(number, os.strerror(number), str(folder))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)

    return unlisted


@pytest.mark.parametrize("source", ["", "*", "*/*.parquet", "**/*.parquet", "j*/**/*.parquet", "jun[e]/*"])
@pytest.mark.parametrize(
    ("number", "transient", "why"),
    [(errno.EACCES, False, "Permission denied"), (errno.EIO, True, "Input/output error")],
)
def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path, unlisted, source, number, transient, why):
    """Its people would be left out, or texted although they are on a list there; a disk may answer later."""
    write(tmp_path / "july" / "a.parquet", a=[1])
    unlisted(tmp_path / "june", number)
    with pytest.raises(SourceError, match=rf"the folder .*/june cannot be listed, .*: {why}\. Let the") as raised:
        open_source(f"{tmp_path}/{source}")
    assert isinstance(raised.value, SourceUnavailableError) == transient


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("lost+found", ""),
        ("lost+found", "**/*.parquet"),
        ("_temporary/0", ""),
        (".trash", "*/*.parquet"),
        ("private", "j*/*.parquet"),
        ("private/a", "j*/*/*.parquet"),
    ],
)
def test_a_folder_in_which_nothing_is_looked_for_need_not_be_listed(tmp_path, unlisted, folder, source):
    """It is hidden, of the system, or one that a glob does not match."""
    write(tmp_path / ("july/1" if source.count("/") > 1 else "july") / "a.parquet", a=[1])
    unlisted(tmp_path / folder)
    assert read(f"{tmp_path}/{source}") == {"a": [1]}


def test_hidden_names_above_the_source_do_not_matter(tmp_path):
    """Only names within the directory can hide a file, not those of the way to it."""
    write(tmp_path / ".cache" / "_out" / "a.parquet", a=[1])
    assert read(tmp_path / ".cache" / "_out") == {"a": [1]}


def test_a_glob(tmp_path):
    """A glob is the files that match, sorted, and the files in the directories that match."""
    for name in ("p2.parquet", "p1.parquet", "q.parquet", "_p.parquet", "part/x.parquet"):
        write(tmp_path / name, name=[name])
    assert read(f"{tmp_path}/p?.parquet") == {"name": ["p1.parquet", "p2.parquet"]}
    assert read(f"{tmp_path}/*") == {"name": ["p1.parquet", "p2.parquet", "part/x.parquet", "q.parquet"]}
    assert read(f"{tmp_path}/**/x.parquet") == {"name": ["part/x.parquet"]}


def test_a_glob_looks_into_no_hidden_folder(tmp_path):
    """Copies and unfinished tables there hold people who are not meant; a folder that the glob names is meant."""
    for name in ("a", "day/b", "_temporary/0/x", ".ipynb_checkpoints/x", "day/.staging/x"):
        write(tmp_path / f"{name}.parquet", name=[name])
    assert read(f"{tmp_path}/**/*.parquet") == {"name": ["a", "day/b"]}
    assert read(f"{tmp_path}/*/*.parquet") == {"name": ["day/b"]}
    assert read(f"{tmp_path}/*/.staging/*.parquet") == {"name": ["day/.staging/x"]}
    assert read(f"{tmp_path}/_temporary/*/x.parquet") == {"name": ["_temporary/0/x"]}


def test_a_name_that_looks_like_a_glob(tmp_path):
    """A file whose name has the signs of a glob is itself."""
    path = write(tmp_path / "a[1].parquet", a=[1])
    write(tmp_path / "a1.parquet", a=[2])
    assert read(path) == {"a": [1]}


def test_other_filesystems(memory):
    """A URI of any protocol that fsspec knows is a file, a directory or a glob there."""
    remember(memory, "/data/b.parquet", a=[2])
    remember(memory, "/data/year=2024/a.parquet", a=[1])
    assert read("memory://data/b.parquet") == {"a": [2]}
    assert read("memory://data", ["a"]) == {"a": [2, 1]}
    assert read("memory://data/*/*.parquet") == {"a": [1]}
    assert open_source("memory://data").description == "memory://data (2 Parquet files)"


class ObjectStore(AbstractFileSystem):
    """Objects whose keys may be the names of folders, as in S3, and listings that are kept."""

    cachable = False

    def __init__(self, **objects):
        super().__init__()
        self.objects = objects

    def _open(self, path, *_, **__):
        return io.BytesIO(self.objects[path])

    def info(self, path, **_):
        if path in self.objects:
            return {"name": path, "size": len(self.objects[path]), "type": "file"}
        if any(key.startswith(f"{path}/") for key in self.objects):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):  # noqa: FBT002 - as fsspec has it
        if path not in self.dircache:
            below = f"{path}/"
            keys = [key for key in self.objects if key.startswith(below)]
            folders = {below + key[len(below) :].split("/")[0] for key in keys if "/" in key[len(below) : -1]}
            found = [self.info(key) for key in keys if "/" not in key[len(below) : -1]]
            found += [{"name": each, "size": 0, "type": "directory"} for each in folders]
            self.dircache[path] = found or [self.info(path)]
        return self.dircache[path] if detail else [each["name"] for each in self.dircache[path]]

    def invalidate_cache(self, path=None):
        self.dircache.clear()


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("key", ["people/", "people/day=1/", "people/day=1_$folder$"])
def test_an_object_that_stands_for_a_folder_is_no_file(key):
    """Consoles and Hadoop write an object without a byte for a folder, by its name with a slash or an ending."""
    objects = ObjectStore(**{"people/day=1/a.parquet": parquet(a=[1]), key: b""})
    for path in ("people", "people/*"):
        assert read(SimpleNamespace(fs=objects, path=path), ["a"]) == {"a": [1]}


def test_an_object_without_a_byte_is_a_file():
    """It is one that was cut short."""
    objects = ObjectStore(**{"people/a.parquet": parquet(a=[1]), "people/b.parquet": b""})
    for path in ("people", "people/b.parquet"):
        with pytest.raises(SourceError, match=r"b\.parquet: is not a valid Parquet file"):
            read(SimpleNamespace(fs=objects, path=path))


def test_each_attempt_lists_a_folder_anew():
    """A listing that the filesystem has kept may lack files that came since."""
    objects = ObjectStore(**{"people/a.parquet": parquet(a=[1])})
    assert read(SimpleNamespace(fs=objects, path="people")) == {"a": [1]}
    objects.objects["people/b.parquet"] = parquet(a=[2])
    assert len(objects.find("people")) == 1
    assert read(SimpleNamespace(fs=objects, path="people")) == {"a": [1, 2]}


def test_objects_with_a_filesystem(memory, tmp_path):
    """An object that has a filesystem and a path there stands for it, as Airflow's ObjectStoragePath does."""
    write(tmp_path / "a.parquet", a=[1])
    assert read(UPath(tmp_path / "a.parquet")) == read(UPath(f"file://{tmp_path}")) == {"a": [1]}
    remember(memory, "/data/a.parquet", a=[1])
    remember(memory, "/data/b.parquet", a=[2])
    assert read(UPath("memory://data")) == {"a": [1, 2]}
    assert read([UPath("memory://data/b.parquet"), UPath("memory://data/a.parquet")]) == {"a": [2, 1]}
    assert read(SimpleNamespace(fs=memory, path="/data/?.parquet")) == {"a": [1, 2]}


@pytest.mark.parametrize("name", ["nothing.parquet", "nothing", "nothing/a.parquet"])
def test_a_missing_file(tmp_path, name):
    """A path where nothing is is an error that shows the path."""
    path = tmp_path / name
    with pytest.raises(SourceError, match="there is no such file or directory") as caught:
        open_source(path)
    assert str(path) in str(caught.value)


def test_a_glob_without_a_match(tmp_path):
    """A glob that matches nothing is an error, and no empty source."""
    with pytest.raises(SourceError, match=r"\*\.parquet: no file matches"):
        open_source(f"{tmp_path}/*.parquet")


@pytest.mark.parametrize("names", [[], ["_SUCCESS"]])
def test_a_directory_without_data(tmp_path, names):
    """A directory without files is an error, and no empty source."""
    for name in names:
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceError, match="the directory holds no file"):
        open_source(tmp_path)


@pytest.mark.parametrize("source", ["", "  "])
def test_an_empty_path(source):
    """A template that rendered to nothing does not stand for the working directory."""
    with pytest.raises(SourceError, match="the path is empty"):
        open_source(source)


def test_an_unknown_protocol():
    """A protocol that nothing is installed for is an error that says so."""
    with pytest.raises(SourceError, match="Protocol not known: nope"):
        open_source("nope://bucket/a.parquet")


class BrokenFilesystem:
    """A filesystem whose every answer is an error that quotes the path."""

    def __repr__(self):
        return type(self).__name__  # Python's own has an address, which may look like a phone number

    def info(self, path):
        raise RuntimeError(path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("https://host/a.parquet?X-Amz-Signature=SECRET", "https://host/a.parquet"),
        ("sftp://user:SECRET@host/a.parquet", "sftp://*****@host/a.parquet"),
    ],
)
def test_secrets_in_a_uri(path, name):
    """A password or a signature in a URI is in no error, and not in what led to it."""

    class Location(SimpleNamespace):
        def __str__(self):
            return self.path

    with pytest.raises(SourceError) as caught:
        open_source(Location(fs=BrokenFilesystem(), path=path))
    assert str(caught.value) == f"source: {name}: cannot be looked up: RuntimeError"
    assert caught.value.__cause__ is None


def test_a_storage_that_fails():
    """A storage that fails is an error of ours with its own behind it."""
    with pytest.raises(SourceError, match="cannot be looked up: RuntimeError") as caught:
        open_source(SimpleNamespace(fs=BrokenFilesystem(), path="/a.parquet"))
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("path", "ending"),
    [
        ("/data/r.csv", ".csv"),
        ("/data/r.CSV ", ".csv"),
        ("s3://bucket/r.json", ".json"),
        ("r.jsonl", ".jsonl"),
        ("r.xls", ".xls"),
        ("r.parquet.gz", ".gz"),
        ("/data/r.txt/", ".txt"),
    ],
)
def test_a_file_of_parquet_is_not_named_as_another_format(path, ending):
    """People and programs open a file by the ending of its name."""
    with pytest.raises(InputError, match=f"report is written as Parquet, so its name may not end with {ending}: use"):
        require_parquet_name(path, "report")


@pytest.mark.parametrize("path", ["r.parquet", "r.PARQ", "r.pq", "/data/r", "/data.csv/r", "s3://b/r"])
def test_a_file_of_parquet_may_have_a_name_that_tells_no_format(path):
    """Such a file is read as Parquet, also by this package."""
    require_parquet_name(path, "report")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("27820000001x", "2782*****01x"),
        ("/data/Ann;+27 82 000 0001", "/data/Ann;2782*****01"),
        ("s3://b/phone=27820000001/a.parquet", "s3://b/phone=2782*****01/a.parquet"),
        ("/data/2026-01-31/people-20260131.parquet", "/data/2026-01-31/people-20260131.parquet"),
        ("/data/manual__2026-01-31T09:00:00+00:00/a.csv", "/data/manual__2026-01-31T09:00:00+00:00/a.csv"),
        ("/data/2026/01/31/07", "/data/2026/01/31/07"),
    ],
)
def test_a_path_is_shown_without_numbers(path, shown):
    """Dates stay, since an error without them says nothing."""
    assert without_secrets(path) == shown
