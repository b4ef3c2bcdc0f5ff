#!/bin/sh
# Runs and checks the quick start: sh demo.sh PATH-OF-REMIT
# Works on a copy. Exits with 0 only if every check passes.
set -eu

[ $# -eq 1 ] || { echo "usage: demo.sh PATH-OF-REMIT" >&2; exit 2; }
case $1 in */*) remit=$1 ;; *) remit=$(command -v "$1") || remit=./$1 ;; esac
[ -x "$remit" ] || { echo "demo: $remit cannot be run; build it: go build -o bin/remit ./cmd/remit" >&2; exit 2; }
remit=$(cd "$(dirname "$remit")" && pwd)/$(basename "$remit")
here=$(cd "$(dirname "$0")" && pwd)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cp -R "$here/workspace" "$tmp/workspace"
cp "$here/policy.rego" "$here/policy_test.rego" "$here/script.jsonl" "$tmp"
cd "$tmp"

fail() { echo; echo "FAILED: $*" >&2; exit 1; }
title() { printf '\n== %s\n' "$*"; }

# One number for the names, folders and bytes of the workspace.
digest() {
	(cd workspace && find . | LC_ALL=C sort | while IFS= read -r f; do
		if [ -f "$f" ]; then printf '%s ' "$f"; cksum <"$f"; else echo "$f/"; fi
	done) | sum
}
if command -v sha256sum >/dev/null; then
	sum() { sha256sum | cut -c1-16; }
elif command -v shasum >/dev/null; then
	sum() { shasum -a 256 | cut -c1-16; }
else
	sum() { cksum | tr ' ' '-'; }
fi

title "The workspace of a small bookshop"
before=$(digest)
(cd workspace && find . -type f | LC_ALL=C sort | sed 's|^\./|   |')
echo "   digest $before"

title "An agent makes seven calls; policy.rego decides about each"
code=0
"$remit" run --workspace workspace --state state --policy policy.rego script.jsonl >answers 2>&1 || code=$?
cat answers
# 5: a call did not verify. The denied one alone gives 3.
[ "$code" -eq 5 ] || fail "remit run ended with $code, and 5 was to be expected"
# A write, an edit and, on a machine that has a sandbox, a program.
[ "$(grep -c 'did not verify, reverted' answers)" -ge 2 ] || fail "the rule about config files does not hold for every tool"

title "What was allowed is done, what went wrong is gone"
after=$(digest)
echo "   digest $after"
[ "$after" != "$before" ] || fail "nothing was changed"
grep -q '14:00' workspace/config/site.ini || fail "the edit is not there"
grep -q 'Maintained by' workspace/config/site.ini || fail "the bad write was not reverted"
sed 's/^/   /' workspace/config/site.ini

title "Revert all of it: remit revert --last"
"$remit" revert --workspace workspace --state state --last

title "And now?"
again=$(digest)
echo "   before $before"
echo "   now    $again"
diff -r "$here/workspace" workspace || fail "the workspace is not as it was"
[ "$again" = "$before" ] || fail "the workspace is not as it was"
echo "   IDENTICAL"
