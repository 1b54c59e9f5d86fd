# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What tools/guest-kernel-packaged and tests/kvm-lab/kernel share: a kernel of the distribution is downloaded and taken
# apart, without being installed. Sourced; the caller has set -euo pipefail and defines die() and say(). PATH gains the
# directories of the system's administrator.

PATH=$PATH:/usr/sbin:/sbin
# shellcheck source=tools/archive.sh
. "$(dirname "${BASH_SOURCE[0]}")/archive.sh"

require() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || die "$1: not found: apt-get install $2"
}

require_kernel_package_tools() {
    [ "$(uname -m)" = x86_64 ] || die "$(uname -m): only x86_64 has a packaged kernel so far: run on x86_64"
    require apt-get apt
    require apt-cache apt
    require dpkg-deb dpkg
    require depmod kmod
    require readelf binutils
    require strip binutils
    require flock util-linux
    require xz xz-utils
}

# Downloads the pinned kernel, unpacks it in WORK/root and lists its modules there. Sets release.
unpack_kernel_package() { # WORK
    local work=$1
    pin_download "$work/download"
    release=${package#linux-image-}
    mkdir "$work/root"
    dpkg-deb -x "$deb" "$work/root"
    rm -rf -- "$work/download"
    [ -f "$work/root/boot/vmlinuz-$release" ] || die "$package: has no /boot/vmlinuz-$release: report the package's name and version"
    # The package leaves modules.dep to the installation. depmod -b writes it in the cache.
    depmod -b "$work/root" "$release" || die "$package: depmod failed on its modules: report the package's name and version"
}

le() { # IMAGE OFFSET BYTES
    od -An -v -t "u$3" -j "$2" -N "$3" --endian=little -- "$1" | tr -d ' '
}

# Turns a bzImage into the ELF file in it, which a PVH start needs. The boot protocol (Documentation/arch/x86/boot.rst)
# says where the compressed kernel is.
unpack_vmlinux() { # IMAGE OUTPUT
    local image=$1 setup_sectors payload length magic trailer unpack
    [ "$(le "$image" $((0x202)) 2)" -ge $((0x208)) ] || die "$image: boot protocol older than 2.08: not a kernel this script can unpack"
    setup_sectors=$(le "$image" $((0x1f1)) 1)
    payload=$(((setup_sectors == 0 ? 5 : setup_sectors + 1) * 512 + $(le "$image" $((0x248)) 4)))
    length=$(le "$image" $((0x24c)) 4)
    magic=$(od -An -v -tx1 -j "$payload" -N 6 -- "$image" | tr -d ' ')
    trailer=4 # all formats but gzip are followed by the size of the kernel
    case $magic in
    fd377a585a00*) unpack='xz -dc' ;;
    28b52ffd*) unpack='zstd -dcq' && require zstd zstd ;;
    02214c18*) unpack='lz4 -dcq' && require lz4 lz4 ;;
    1f8b*) unpack='gzip -dc' && trailer=0 ;;
    *) die "$image: compressed in a way that begins with $magic: expected xz, zstd, lz4 or gzip" ;;
    esac
    # shellcheck disable=SC2086 # a command and its options
    dd if="$image" bs=1M iflag=skip_bytes,count_bytes skip="$payload" count=$((length - trailer)) status=none | $unpack >"$2" ||
        die "$image: ${unpack%% *} cannot unpack the kernel: download it again"
    [ "$(head -c 4 "$2" | od -An -tx1 | tr -d ' ')" = 7f454c46 ] ||
        die "$image: what it unpacks to is not ELF file: report the package's name and version"
    readelf -nW "$2" 2>/dev/null | grep -Eq '^ *Xen .*0x00000012' ||
        die "$image: its kernel has no PVH entry note: QEMU could not start it: use the kernel of kernel-config/build"
}

# Prints the modules to load, dependencies first, as paths below TREE; "missing: NAME" for one that is neither there nor
# built in.
plan_modules() { # TREE NAME...
    local tree=$1
    shift
    tr '\0' '\n' <"$tree/modules.builtin.modinfo" | sed -n 's/^[^.]*\.alias=//p' >"$tree/builtin.aliases"
    awk -v wanted="$*" '
        function key(path) { sub(/.*\//, "", path); sub(/\.ko.*/, "", path); gsub(/-/, "_", path); return path }
        function load(name,   n, i, part, list, j, pre) {
            if (done[name]++) return
            # What the module asks for by another name (an algorithm), unless the kernel has it.
            n = split(soft[name], pre, " ")
            for (i = 1; i <= n; i++) {
                gsub(/-/, "_", pre[i])
                if (pre[i] in path) load(pre[i])
                else if (!(pre[i] in builtin) && pre[i] in alias) load(alias[pre[i]])
            }
            # modules.dep lists the deepest last.
            n = split(depends[name], list, " ")
            for (j = n; j >= 1; j--) load(key(list[j]))
            print path[name]
        }
        FILENAME ~ /modules\.dep$/ {
            file = $1; sub(/:$/, "", file); path[key(file)] = file
            $1 = ""; depends[key(file)] = $0
        }
        FILENAME ~ /modules\.builtin$/ { builtin[key($1)] = 1 }
        FILENAME ~ /builtin\.aliases$/ { name = $1; gsub(/-/, "_", name); builtin[name] = 1 }
        FILENAME ~ /modules\.softdep$/ && $1 == "softdep" {
            for (i = 3; i <= NF; i++) {
                if ($i == "pre:" || $i == "post:") { when = $i; continue }
                if (when == "pre:") soft[$2] = soft[$2] " " $i
            }
            when = ""
        }
        FILENAME ~ /modules\.alias$/ && $1 == "alias" {
            name = $2; gsub(/-/, "_", name)
            # A plain implementation runs on every processor, an accelerated one may refuse.
            if (!(name in alias) || $3 ~ /_generic$/) alias[name] = $3
        }
        END {
            n = split(wanted, name_of, /[ \n]+/)
            for (i = 1; i <= n; i++) {
                name = name_of[i]
                if (name == "" || name in builtin) continue
                if (!(name in path)) { print "missing: " name; continue }
                load(name)
            }
        }
    ' "$tree/modules.dep" "$tree/modules.builtin" "$tree/builtin.aliases" "$tree/modules.softdep" "$tree/modules.alias"
}

# Unpacks the modules named, with what they depend on, into DIR as NN-name.ko in the order in which they are to be loaded.
lay_out_modules() { # TREE DIR NAME...
    local tree=$1 dir=$2 plan path name target number=0
    shift 2
    plan=$(plan_modules "$tree" "$@")
    if grep '^missing: ' <<<"$plan" >&2; then
        die "${tree##*/}: has not every module that is needed (above): is it the right kernel?"
    fi
    while read -r path; do
        name=${path##*/}
        name=${name%%.ko*}
        printf -v target '%s/%02d-%s.ko' "$dir" "$number" "$name"
        case $path in
        *.ko) cat "$tree/$path" ;;
        *.ko.xz) xz -dc "$tree/$path" ;;
        *.ko.zst) require zstd zstd && zstd -dcq "$tree/$path" ;;
        *.ko.gz) gzip -dc "$tree/$path" ;;
        *) die "$path: compressed in an unknown way: expected .ko, .ko.xz, .ko.zst or .ko.gz" ;;
        esac >"$target" || die "$path: cannot be unpacked: download the package again"
        # Strip drops the signature with the rest. The guest would check each one, a sixth of its boot under emulation, although
        # the modules come from the same hands as the kernel itself.
        strip --strip-debug "$target" || die "$path: strip failed: download the package again"
        number=$((number + 1))
    done <<<"$plan"
}
