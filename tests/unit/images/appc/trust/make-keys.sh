#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make-keys.sh DIRECTORY
#
# Makes real keys and signatures in an empty directory, for the tests of keys and signatures:
#   file, other        content
#   NAME.asc           public keys of alice (ed25519, two identities and a revoked one), bob (RSA), carol (signs with
#                      a subkey), many (18 identities), odd (an identity with what must not be shown)
#   expired.asc revoked.asc certify.asc secret.asc disguised.asc both.asc    keys that are refused
#   NAME.fpr           fingerprints of these keys
#   NAME.sig           detached signatures over file, by these keys or called after what is special
# No process of gpg is left.
set -euo pipefail
cd "$1"
mkdir -m 700 home
export GNUPGHOME=$PWD/home LC_ALL=C.UTF-8
trap 'gpgconf --kill all' EXIT

gpg() {
	command gpg --batch --quiet --no-tty --pinentry-mode loopback --passphrase '' "$@" 2>>log
}
new_key() { # NAME ALGORITHM USAGE EXPIRY OPTION...
	local name=$1 rest=("${@:2:3}")
	shift 4
	gpg "$@" --quick-gen-key "$name <$name@example.com>" "${rest[@]}"
}
export_key() { # NAME
	gpg --armor --export "$1@example.com" >"$1.asc"
	printf %s "$(fingerprint "$1")" >"$1.fpr"
}
sign() { # OUTPUT NAME OPTION...
	local out=$1 name=$2
	shift 2
	gpg --local-user "$name@example.com" "$@" --detach-sign --output "$out" file
}
fingerprint() { # NAME
	gpg --with-colons --list-keys "$1@example.com" | awk -F: '$1 == "fpr" { print $10; exit }'
}
then_is() { # DAY: options for a past in which keys did not expire yet
	echo "--faked-system-time=2020010${1}T000000!"
}

printf 'content\r\nof a file\n' >file
printf 'other content' >other

new_key alice ed25519 sign never
gpg --quick-add-uid "$(fingerprint alice)" 'Alice of the project'
gpg --quick-add-uid "$(fingerprint alice)" 'gone'
gpg --quick-revoke-uid "$(fingerprint alice)" 'gone'
export_key alice
sign alice.sig alice
sign alice-armour.sig alice --armor
for _ in {1..16}; do
	cat alice.sig
done >sixteen.sig
cat sixteen.sig alice.sig >seventeen.sig

new_key bob rsa2048 sign never "$(then_is 1)"
export_key bob
sign bob.sig bob --digest-algo SHA256
sign sha1.sig bob --digest-algo SHA1
sign md5.sig bob --digest-algo MD5 --allow-weak-digest-algos
sign ripemd160.sig bob --digest-algo RIPEMD160 --allow-weak-digest-algos
for bits in 224 384 512; do
	sign sha$bits.sig bob --digest-algo SHA$bits
done
sign text.sig bob --textmode
sign sig-expired.sig bob "$(then_is 2)" --default-sig-expire=1d
sign two.sig alice --local-user bob@example.com --digest-algo SHA256
gpg --local-user bob@example.com --sign --output inline.sig file
gpg --local-user bob@example.com --clear-sign --output clear.sig file
gpg --local-user bob@example.com --digest-algo SHA256 --detach-sign --output bob-other.sig other
sign alice-sha256.sig alice --digest-algo SHA256
cat alice-sha256.sig bob-other.sig >good-and-bad.sig

new_key carol ed25519 cert never
gpg --quick-add-key "$(fingerprint carol)" ed25519 sign never
export_key carol
sign carol.sig carol

new_key many ed25519 sign never
for n in {1..17}; do
	gpg --quick-add-uid "$(fingerprint many)" "identity $n"
done
export_key many

# A terminal sequence with U+009B, and text that runs backwards.
gpg --quick-gen-key $'odd\xc2\x9b31m\xe2\x80\xaedesrever <odd@example.com>' ed25519 sign never
export_key odd

new_key expired ed25519 sign 1d "$(then_is 1)"
export_key expired
sign expired.sig expired "$(then_is 1)"

new_key revoked ed25519 sign never
sign revoked.sig revoked
sed 's/^:---/---/' "home/openpgp-revocs.d/$(fingerprint revoked).rev" >revocation
gpg --import revocation
export_key revoked

new_key certify ed25519 cert never
export_key certify
gpg --armor --export-secret-keys bob@example.com >secret.asc
sed 's/PRIVATE/PUBLIC/' secret.asc >disguised.asc
gpg --armor --export alice@example.com bob@example.com >both.asc
