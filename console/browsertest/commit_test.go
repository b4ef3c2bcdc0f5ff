package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// commitRules ask once, before the changes stay.
const commitRules = `package remit

allow contains "files may change" if input.access.action in {"read", "write", "delete", "list"}

ask_commit contains "a person looks before it stays" if {
	some effect in input.txn.effects
	effect.class == "reversible"
}
`

// TestCommitByClicks: a person approves a commit after seeing its difference, a
// long one by opening it, in at most five clicks from now.
func TestCommitByClicks(t *testing.T) {
	p := newPlace(t)
	p.put("rules.rego", commitRules)
	p.run(write("notes.txt", "one\n"), write("long.txt", strings.Repeat("harmless\n", 400)))
	p.attended()
	p.open()
	p.has("Waiting for you (1)")
	p.clicks = 0
	p.click("of all changes of transaction")
	p.heading("Approve the commit of")
	p.has("a person looks before it stays")
	p.until(`[...document.querySelectorAll("tr.add")].some((e) => e.innerText.includes("one"))`)
	p.click("long.txt")
	p.until(`document.querySelectorAll("tr.add").length > 400`)
	p.click("Approve")
	p.has("approved by")
	require.LessOrEqual(t, p.clicks, 5)
	p.click("Now")
	p.heading("Now")
	p.has("Answered, not resumed yet")
}

// TestCommitByKeys: a person without a mouse denies a commit, with a reason.
func TestCommitByKeys(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.put("rules.rego", commitRules)
	p.run(write("notes.txt", "one\n"))
	p.open()
	p.focusOn("j", "of all changes of transaction")
	p.press(kb.Enter)
	p.heading("Approve the commit of")
	p.until(`document.readyState === "complete"`)
	for range 100 {
		p.press(kb.Tab)
		if p.focused(`name`) == "why" {
			break
		}
	}
	p.press("no <b>thanks</b>")
	p.tabTo("Deny and revert")
	p.press(kb.Enter)
	p.has("denied by")
	p.has("no <b>thanks</b>")
}

// TestCommitReplayed: a tab that was open while the transaction changed approves
// nothing.
func TestCommitReplayed(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.put("rules.rego", commitRules)
	p.run(write("notes.txt", "one\n"))
	p.attended()
	p.open()
	p.click("of all changes of transaction")
	p.heading("Approve the commit of")
	p.until(`(document.querySelector("input[name=request]").value = "sha256:00", true)`)
	p.click("Approve")
	p.heading("The commit asks for something else now")
	p.visit(p.address + "/")
	p.heading("Now")
	p.has("Waiting for you (1)")
}

// TestNotified: while the person looks elsewhere, a notification says how much
// waits, without a text of the agent.
func TestNotified(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.run(write("notes.txt", "one\n"))
	p.open()
	p.has("live")
	p.until(`(window.Notification = class { constructor(title, more) { (window.told ||= []).push(title + ": " + more.body); } }, Notification.permission = "granted", document.hasFocus = () => false, true)`)
	p.run(write("notes.txt", "two\n"))
	p.run(write("secret<b>.txt", "asked\n"))
	p.has("Waiting for you (1)")
	p.until(`window.told && window.told.join() === "remit: 1 answer is missing"`)
	p.run(write("secret2.txt", "asked\n"))
	p.has("Waiting for you (2)")
	p.until(`window.told && window.told.join() === "remit: 1 answer is missing,remit: 2 answers are missing"`)
}
