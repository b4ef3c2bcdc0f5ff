package cli

import (
	"fmt"
	"io"
)

// Style colours text. The zero value leaves text plain.
type Style bool

func (p Style) in(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Good colours a success.
func (p Style) Good(text string) string { return p.in("32", text) }

// Bad colours a failure.
func (p Style) Bad(text string) string { return p.in("31", text) }

// Doubt colours a warning.
func (p Style) Doubt(text string) string { return p.in("33", text) }

// Faint dims a detail.
func (p Style) Faint(text string) string { return p.in("2", text) }

// Bold emphasizes a name.
func (p Style) Bold(text string) string { return p.in("1", text) }

// Problem writes the lines of a problem that are not empty.
func (p Style) Problem(w io.Writer, prefix string, pr *Problem) {
	_, _ = fmt.Fprintln(w, p.Bad(prefix)+Printable(pr.What))
	p.Details(w, pr)
}

// Details writes why, the fix and the ID, if they are not empty.
func (p Style) Details(w io.Writer, pr *Problem) {
	show, fix := "", "fix"
	if pr.Denied {
		fix = "allow"
	}
	if pr.ID != "" {
		show = "remit show " + pr.ID
	}
	for _, l := range [][2]string{{"why", pr.Why}, {fix, pr.Fix}, {"show", show}} {
		if l[1] != "" {
			_, _ = fmt.Fprintln(w, "     "+p.Faint(fmt.Sprintf("%-6s", l[0]))+Printable(l[1]))
		}
	}
}
