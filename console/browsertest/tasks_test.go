package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// TestSmoke: the address opens the page, once, and the page lists the calls.
func TestSmoke(t *testing.T) {
	p := newPlace(t)
	p.run(write("notes.txt", "one\n"))
	p.open()
	p.has("notes.txt")
	p.has("live")
	p.run(write("notes-later.txt", "two\n")) // another process
	p.has("notes-later.txt")
}

// TestByClicks: each task of a person takes at most five clicks from now.
func TestByClicks(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.run(write("notes.txt", "one\n"), write("notes-other.txt", "two\n"))
	p.run(`{"tool":"file_delete","args":{"path":"notes.txt"}}`)
	p.run(write("secret.txt", "asked\n"))
	p.attended()
	p.open()
	task := func(name string, do func()) {
		p.visit(p.address + "/")
		p.heading("Now")
		p.clicks = 0
		do()
		t.Logf("%s: %d clicks", name, p.clicks)
		require.LessOrEqual(t, p.clicks, 5, name)
	}
	task("who changed a file, and why", func() {
		p.click("notes-other.txt")
		p.heading("Call of file_write")
		p.has("notes may change")
		p.has("rules.rego:5")
		p.has("agent")
	})
	task("why a call was denied", func() {
		p.click("file_delete")
		p.heading("Call of file_delete")
		p.has("denied")
	})
	task("approve after seeing the difference", func() {
		p.click("secret.txt")
		p.heading("Approve file_write")
		p.has("a person looks at the other files")
		p.has("asked")
		p.click("Approve")
		p.has("answered")
	})
	task("take back one file of several", func() {
		p.until(`document.querySelectorAll("a[href^='/revert?id=t_']").length > 0`)
		p.click("take back")
		p.heading("Take back: the plan")
		p.click("Choose single files")
		p.click("notes-other.txt") // leaves it out
		p.click("Show this plan")
		p.until(`location.search.includes("file=")`)
		p.click("Take back as planned")
		p.heading("Taken back")
		require.Equal(t, "(none)", p.read("notes.txt"))
		require.Equal(t, "two\n", p.read("notes-other.txt"))
	})
	task("redo", func() {
		p.click("redo")
		p.heading("Redo")
		p.click("Redo")
		p.heading("Redone")
		require.Equal(t, "one\n", p.read("notes.txt"))
	})
	task("approve later calls for an hour, and revoke that", func() {
		p.run(write("later.txt", "asked\n"))
		p.click("later.txt")
		p.heading("Approve file_write")
		p.click("also later calls of this session")
		p.click("Approve")
		p.has("answered")
		p.click("Grants")
		p.heading("Grants")
		p.has("later.txt")
		p.click("Revoke")
		p.has("Valid now (0)")
	})
	task("let a denied call through from then on", func() {
		p.click("file_delete")
		p.heading("Call of file_delete")
		p.click("Explain it, and let it through")
		p.heading("Why, and what lets it through")
		p.has("the smallest change that lets it through")
		rule, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.querySelector("pre").textContent.match(/^ *allow contains[^]*?\n *}/m)[0]`))
		require.NoError(t, err)
		p.put("rules.rego", rules+"\n"+rule+"\n")
		p.run(`{"tool":"file_delete","args":{"path":"notes.txt"}}`)
		require.Equal(t, "(none)", p.read("notes.txt"))
	})
}

// TestByKeys: a person without a mouse does the same.
func TestByKeys(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.run(write("notes.txt", "one\n"))
	p.run(write("secret.txt", "asked\n"))
	p.attended()
	p.open()
	p.press("?")
	p.until(`document.querySelector("#keys").open`)
	p.press(kb.Escape)
	p.until(`!document.querySelector("#keys").open`)
	p.focusOn("j", "notes.txt")
	p.press(kb.Enter)
	p.heading("Call of file_write")
	p.press("u")
	p.heading("Take back: the plan")
	p.press(kb.Tab)
	p.until(`document.activeElement !== document.body`)
	p.tabTo("Take back as planned")
	p.press(kb.Enter)
	p.heading("Taken back")
	require.Equal(t, "(none)", p.read("notes.txt"))
	p.press("n")
	p.heading("Now")
	p.focusOn("j", "secret.txt")
	p.press(kb.Enter)
	p.heading("Approve")
	p.tabTo("Deny")
	p.press(kb.Enter)
	p.has("denied by")
	p.press("t")
	p.heading("Timeline")
	p.press("/")
	p.until(`document.activeElement.id === "search"`)
	_, err := chromedp.Run(p.ctx, chromedp.Evaluate[chromedp.Void](`document.activeElement.value = ""`)) // the protocol types the key that a browser drops
	require.NoError(t, err)
	p.press("secret" + kb.Enter)
	p.until(`location.search.includes("q=secret")`)
	p.heading("Timeline")
	p.until(`document.querySelectorAll("li.call").length === 1`)
}

// tabTo presses the tab key until an element with a text has the focus.
func (p *place) tabTo(text string) {
	p.t.Helper()
	p.focusOn(kb.Tab, text)
}

// TestHostileNames: the browser runs nothing of what an agent wrote, and breaks
// no page.
func TestHostileNames(t *testing.T) {
	proves(t)
	p := newPlace(t)
	for _, text := range []string{`<script>document.title="in"</script>`, `"><img src=x onerror="document.title='in'">`, "\u202egnp.exe", `javascript:document.title="in"`, `</main></body><h1>x</h1>`} {
		p.run(write("notes"+text, text+"\n"+text), write(`other`+text, text))
	}
	p.open()
	for _, path := range []string{"/", "/timeline", "/sessions", "/timeline?q=%3Cscript%3Ealert(1)%3C/script%3E"} {
		p.visit(p.address + path)
		p.until(`document.readyState === "complete"`)
		p.until(`document.title !== "in" && document.querySelectorAll("h1").length === 1 && document.querySelectorAll("main img, main script").length === 0`)
	}
}

// TestGrantByKeys: a person without a mouse approves later calls with the same
// arguments for ten minutes, looks at the explanation, and revokes the grant.
func TestGrantByKeys(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.run(write("secret.txt", "asked\n"))
	p.attended()
	p.open()
	p.focusOn("j", "secret.txt")
	p.press(kb.Enter)
	p.heading("Approve file_write")
	p.until(`document.readyState === "complete"`)
	until := func(name string) {
		for range 100 {
			if p.press(kb.Tab); p.focused("name") == name {
				return
			}
		}
		require.Fail(t, "no field gets the focus", name)
	}
	until("scope")
	p.press(kb.ArrowDown)
	until("for")
	p.press(kb.ArrowUp)
	until("same")
	p.press(" ")
	p.tabTo("Approve")
	p.press(kb.Enter)
	p.has("answered")
	p.focusOn("j", "the call")
	p.press(kb.Enter)
	p.heading("Call of file_write")
	p.press("w")
	p.heading("Why, and what lets it through")
	p.press("g")
	p.heading("Grants")
	p.has("only with the arguments that were approved")
	p.focusOn("j", "Revoke")
	p.press(kb.Enter)
	p.has("Valid now (0)")
}
