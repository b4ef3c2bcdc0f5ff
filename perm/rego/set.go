package rego

import (
	"strings"

	"github.com/remit-dev/remit/perm"
)

// The sets that a policy fills in package remit. Each comment names the element
// and the effect; docs/reference/policy.md has them as a table.
const (
	setDeny    = "deny"    // reason: denies the access, even if other sets permit it
	setLimit   = "limit"   // reason, or a budget: denies the access; a budget only if it is used up
	setAsk     = "ask"     // reason, or an object that says what the approval covers: requires an approval
	setHold    = "hold"    // reason: queues the call until its transaction commits
	setAllow   = "allow"   // reason: permits the access now
	setHint    = "hint"    // sentence: goes to the model with a refusal
	setRequire = "require" // verify, revert, sandbox or preview: adds an obligation to the call
	setEnsure  = "ensure"  // reason, the violation: the postcondition failed; only with purpose verify
	setMask    = "mask"    // pattern of files, or one with except and further patterns: hides paths from programs in the sandbox
	setLabel   = "label"   // label: adds the label to the session
	setRedact  = "redact"  // JSON pointer into /args or /output: hides the value in records, messages and output
	setHide    = "hide"    // reason: hides the tool; only with purpose list

	setDenyCommit = "deny_commit" // reason: reverts the transaction; only with purpose commit
	setAskCommit  = "ask_commit"  // reason: the commit requires an approval; only with purpose commit
)

// setNames returns the sets in the order of the documentation.
func setNames() []string {
	return []string{
		setDeny, setLimit, setAsk, setHold, setAllow, setHint,
		setRequire, setEnsure, setMask, setLabel, setRedact, setHide, setDenyCommit, setAskCommit,
	}
}

func isSet(name string) bool {
	for _, s := range setNames() {
		if s == name {
			return true
		}
	}
	return false
}

// asked reports whether a set is evaluated for a purpose. Some have a meaning
// only for their own purpose, and would slow every other decision. A commit has
// sets of its own and no other: rules about calls must not decide it.
func asked(set string, purpose perm.Purpose) bool {
	switch set {
	case setEnsure:
		return purpose == perm.PurposeVerify
	case setHide:
		return purpose == perm.PurposeList
	default:
		return ofCommits(set) == (purpose == perm.PurposeCommit)
	}
}

// ofCommits reports whether a set decides commits.
func ofCommits(set string) bool { return set == setDenyCommit || set == setAskCommit }

// privatePrefix starts the names of the copies of rules that carry locations.
const privatePrefix = "__remit_"

func privateName(set string) string { return privatePrefix + set }

// requirements returns the valid elements of require.
func requirements() []string { return []string{"verify", "revert", "sandbox", "preview"} }

// badElement returns the error of an element of a set, or "". The loader checks
// constants with it, and every decision checks every element again.
func badElement(set, text string) string {
	switch set {
	case setRequire:
		for _, r := range requirements() {
			if text == r {
				return ""
			}
		}
		return "require knows " + strings.Join(requirements(), ", ") + " and nothing else"
	case setRedact:
		if !isPointer(text) {
			return "an element of redact is a JSON pointer into /args or /output, such as /args/token"
		}
	case setMask:
		if m, err := perm.ParseMask(text); err != nil || m.Kind() != perm.KindFile {
			return "an element of mask is a pattern of files such as file://*/**/.git/**, or one, the word except, and patterns"
		}
	}
	return ""
}

// isPointer reports whether text is a JSON pointer (RFC 6901) into the arguments
// or the output of a call.
func isPointer(text string) bool {
	inside, slash := strings.CutPrefix(text, "/")
	if first, _, _ := strings.Cut(inside, "/"); !slash || (first != "args" && first != "output") {
		return false
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '~' {
			continue
		}
		if i+1 == len(text) || (text[i+1] != '0' && text[i+1] != '1') {
			return false
		}
	}
	return true
}
