package cli

import (
	"fmt"
	"io"
	"strings"
)

// Patch writes a patch for a terminal: it escapes control characters of file
// lines.
func (p Style) Patch(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    ")
		shown := Printable(line)
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			shown = p.Bold(shown)
		case strings.HasPrefix(line, "+"):
			shown = p.Good(shown)
		case strings.HasPrefix(line, "-"):
			shown = p.Bad(shown)
		case strings.HasPrefix(line, "@@"):
			shown = p.Faint(shown)
		}
		_, _ = fmt.Fprintln(w, shown)
	}
}
