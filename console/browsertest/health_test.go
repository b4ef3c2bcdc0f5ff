package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestHealthByKeys: a person without a mouse runs the checks, and ends the visits
// of other browsers.
func TestHealthByKeys(t *testing.T) {
	proves(t)
	p := newPlace(t)
	p.run(write("notes.txt", "one\n"))
	p.open()
	p.press("h")
	p.heading("Health")
	p.until(`document.readyState === "complete"`)
	p.focusOn("j", "Check the machine")
	p.press(kb.Enter)
	p.has("Check again")
	p.has("store format")
	p.focusOn("j", "End all but this browser")
	p.press(kb.Enter)
	p.has("this browser, until")
	p.themes(func(string) { p.has("Checks") })
}
