"""The environment is described whole, and gives nobody away."""

import getpass
import os
import platform
from pathlib import Path

import pytest

import dbdyno
from dbdyno.experiment.watch import environment


def test_every_line_says_something():
    described = environment.describe()
    assert all(isinstance(value, str) and value for value in described.values())
    assert described["dbdyno"] == dbdyno.__version__
    assert described["cores"].startswith(str(os.cpu_count()))
    assert described["memory"].endswith("GiB")


def test_neither_host_nor_user_nor_path_is_named():
    described = "\n".join(environment.describe().values())
    for private in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert private not in described
    assert getpass.getuser() not in described.split()


def test_the_filesystem_is_that_of_the_folder():
    assert environment.describe(Path("/proc"))["filesystem"] == "proc"


def test_what_cannot_be_read_is_unknown(tmp_path):
    described = environment.describe(tmp_path, root=tmp_path)
    facts = ("governor", "smt", "clocksource", "numa_nodes", "transparent_huge_pages")
    storage = ("filesystem", "storage", "storage_kind", "io_scheduler")
    assert {described[fact] for fact in (*facts, *storage)} == {"unknown"}


def plant(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")


def test_the_machine_is_read_below_its_root(tmp_path):
    plant(
        tmp_path,
        {
            "proc/cpuinfo": "model name : Made CPU\nflags : sse hypervisor",
            "sys/class/dmi/id/product_name": "KVM",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
            "sys/devices/system/node/online": "0-1,4",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
            ".dockerenv": "",
        },
    )
    described = environment.describe(tmp_path, root=tmp_path)
    assert described["cpu"] == "Made CPU"
    assert described["virtualisation"] == "virtual machine (KVM), container"
    assert (described["governor"], described["numa_nodes"]) == ("performance", "3")
    assert described["transparent_huge_pages"] == "madvise"


def disk(root: Path, at: str, scheduler: str = "[none] mq-deadline", **files: str) -> Path:
    folder = root / "sys/devices" / at
    plant(
        folder, {"queue/scheduler": scheduler, **{k.replace("_", "/"): v for k, v in files.items()}}
    )
    return folder


def storage(root: Path, device: Path, folder: Path) -> tuple[str, str, str]:
    """What is said where `folder` lies on that device."""
    number = folder.stat().st_dev
    place = root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(device)
    found = environment.describe(folder, root=root)
    return found["storage"], found["storage_kind"], found["io_scheduler"]


def test_the_disk_below_the_workspace_is_named_with_its_kind(tmp_path):
    def seen(*device: str, **files: str) -> tuple[str, str, str]:
        return storage(tmp_path, disk(tmp_path, *device, **files), tmp_path)

    made = "Samsung SSD 980"
    nvme = seen("pci0/nvme/nvme0/nvme0n1", device_model=made, queue_rotational="0")
    assert nvme == ("nvme0n1 (Samsung SSD 980)", "NVMe", "none")
    assert seen("ata1/block/sda", "bfq [mq-deadline]", queue_rotational="1") == (
        "sda",
        "rotational",
        "mq-deadline",
    )
    assert seen("ata2/block/sdb", queue_rotational="0")[1] == "SSD"
    assert (
        seen("ata3/block/sdc", device_model="QEMU HARDDISK", queue_rotational="1")[1] == "virtual"
    )
    assert seen("pci0/virtio1/block/vda", queue_rotational="1")[1] == "virtual (virtio)"
    assert seen("ata4/block/sdd")[1] == "unknown"


def test_a_partition_and_a_volume_are_followed_down_to_their_disks(tmp_path):
    whole = disk(tmp_path, "nvme/nvme0n1")
    plant(whole, {"nvme0n1p2/partition": "2"})
    assert storage(tmp_path, whole / "nvme0n1p2", tmp_path) == ("nvme0n1", "NVMe", "none")
    other = disk(tmp_path, "ata/block/sda", queue_rotational="1")
    volume = disk(tmp_path, "virtual/block/dm-0")
    (volume / "slaves").mkdir()
    (volume / "slaves/nvme0n1p2").symlink_to(whole / "nvme0n1p2")
    (volume / "slaves/sda").symlink_to(other)
    seen = storage(tmp_path, volume, tmp_path)
    assert seen == ("nvme0n1; sda", "NVMe; rotational", "none")


def test_a_filesystem_without_a_device_of_its_own_is_found_by_its_source(tmp_path):
    folder = tmp_path / "a workspace of Zoë"
    folder.mkdir()
    point = str(folder).replace(" ", "\\040")
    mounts = ["1 0 8:1 / / rw - ext4 /dev/sda1 rw", f"2 1 0:9 / {point} rw - btrfs /dev/sdq rw"]
    plant(tmp_path, {"proc/self/mountinfo": "\n".join(mounts)})
    device = disk(tmp_path, "ata/block/sdq", queue_rotational="0")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    (tmp_path / "sys/class/block/sdq").symlink_to(device)
    found = environment.describe(folder, root=tmp_path)
    assert (found["filesystem"], found["storage"], found["storage_kind"]) == ("btrfs", "sdq", "SSD")
    assert environment.describe(tmp_path, root=tmp_path)["storage"] == "unknown"


MAPS = "7f00-7f01 r-xp 00000000 fe:00 12 "


@pytest.mark.parametrize(
    ("mapped", "said", "allocator"),
    [
        (("/usr/lib/x86_64-linux-gnu/libc.so.6",), "", "glibc"),
        (("/lib/libc-2.28.so", "/usr/lib/libjemalloc.so.2"), "", "jemalloc"),
        (("/lib/libc.so.6", "/opt/libtcmalloc_minimal.so.4.5"), "", "tcmalloc"),
        (("/lib/libc.so.6",), "system", "glibc"),
        (("/lib/libc.so.6",), "bundled jemalloc", "bundled jemalloc"),
        (("/opt/mysqld",), "", "unknown"),
        ((), "", "unknown"),
    ],
)
def test_the_allocator_is_the_one_that_the_process_maps_or_names(tmp_path, mapped, said, allocator):
    plant(tmp_path, {"proc/7/maps": "\n".join(MAPS + path for path in mapped)})
    settings = {"version_malloc_library": said} if said else {}
    assert environment.allocator_of(7, settings, root=tmp_path) == allocator


def test_a_server_that_is_no_process_of_ours_has_an_unknown_allocator():
    assert environment.allocator_of(0, {}) == "unknown"
