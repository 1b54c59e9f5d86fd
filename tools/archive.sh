# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The packages of the distribution's archive that guest kernels are made of: pinned in kernel-config/pins, downloaded, never
# installed.
#
# An archive keeps the last few versions of a package. In place of a pin that it has dropped, the newest of the same series
# is taken, with a warning: it is not what was tested, but signed by the same archive, and what cannot be downloaded any
# more helps nobody. tools/pins moves the pins.
#
# Sourced by those who download; the caller has set -euo pipefail and defines die() and say(). A pin is in the variables
# package, version and sha256.

pins=$(dirname "${BASH_SOURCE[0]}")/../kernel-config/pins

# Reads the pin of that name.
pin_read() { # NAME
    local name
    while read -r name package version sha256; do
        [ "$name" != "$1" ] || return 0
    done <"$pins"
    die "$pins: has no line \"$1\": restore the file"
}

# The names of packages of the same series as this one, as a regular expression: other point releases of the line of
# kernels, of the same flavour. That of a source package says which line it is of.
series_of() { # PACKAGE
    sed -E 's/^(linux-image-[0-9]+\.[0-9]+\.)[^-]*-/\1[^-]*-/' <<<"$1"
}

# "PACKAGE VERSION SHA256" of a package as apt knows it; nothing if it does not.
archive_show() { # PACKAGE[=VERSION]
    { apt-cache show --no-all-versions "$1" 2>/dev/null || true; } |
        awk '$1 == "Package:" { p = $2 } $1 == "Version:" { v = $2 } $1 == "SHA256:" { print p, v, $2; exit }'
}

# The same of the newest of a series.
archive_newest() { # SERIES
    local name
    for name in $(apt-cache pkgnames linux- | grep -Ex "$1" | sort -rV); do
        # Names that are only referred to have no version.
        archive_show "$name" | grep . && return
    done
    return 0
}

# Has apt read the lists of the archive anew. Who may not does without.
archive_refresh() {
    say "apt-get update"
    apt-get -q update >/dev/null 2>&1 || say "apt-get update failed: run it as root for its words"
}

# Makes the pin one that apt knows by its lists as they are, without the network. 1 if that takes newer lists.
pin_follow_lists() {
    local newest
    [ -z "$(archive_show "$package=$version")" ] || return 0
    newest=$(archive_newest "$(series_of "$package")")
    [ -n "$newest" ] && dpkg --compare-versions "$(cut -d ' ' -f 2 <<<"$newest")" gt "$version" || return 1
    pin_replace "$newest"
}

pin_replace() { # "PACKAGE VERSION SHA256"
    local pin=$package=$version
    read -r package version sha256 <<<"$1"
    say "warning: the archive does not have $pin any more: taking $package=$version"
}

# Makes the pin one that the archive has.
pin_follow() {
    local newest
    ! pin_follow_lists || return 0
    archive_refresh
    ! pin_follow_lists || return 0
    newest=$(archive_newest "$(series_of "$package")")
    [ -n "$newest" ] || die "$package=$version: apt knows no package $(series_of "$package"): apt-get update, or add Debian's archive"
    pin_replace "$newest"
}

verified() { # FILE SHA256
    [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]
}

# Whether the pinned package is in DIR, as $deb.
pin_is_in() { # DIR
    deb=$1/${package}_$version.deb
    verified "$deb" "$sha256"
}

# Downloads the pinned package, or what the archive has in its place, into DIR, unless it is there. Sets deb to the file.
pin_download() { # DIR
    local try
    mkdir -p -- "$1"
    for try in 1 2 3; do
        ! pin_is_in "$1" || return 0
        pin_follow
        ! pin_is_in "$1" || return 0
        say "downloading $package $version"
        if archive_download "$package=$version" "$deb"; then
            verified "$deb" "$sha256" ||
                die "$deb: SHA-256 differs from the pin: delete it and try again; if it stays, do not trust the archive"
            return 0
        fi
        say "no download of $package=$version, try $try of 3"
        archive_refresh # an archive that has moved on, or a mirror that was in between
    done
    die "$package=$version: cannot download it (above): check the network, and the proxy if there is one"
}

archive_download() { # PACKAGE=VERSION FILE
    rm -rf -- "$2.new"
    mkdir -- "$2.new"
    # As root apt wants to fetch as another user, who cannot see a private cache; the hash is checked all the same.
    (cd "$2.new" && apt-get -q -o APT::Sandbox::User=root download "$1" >&2) || return
    mv -- "$2.new"/*.deb "$2"
    rm -rf -- "$2.new"
}
