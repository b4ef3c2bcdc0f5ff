package watch

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// mark returns the sign of a call's outcome.
func mark(p cli.Style, l callview.Line) string {
	signs := map[string]string{"good": "✓", "bad": "✗", "doubt": "…", "faint": "·"}
	if l.Status == "unknown" {
		return p.Bad("?")
	}
	return styled(p, l.Kind, signs[l.Kind])
}

// styled colours a text by the class of its style.
func styled(p cli.Style, kind, text string) string {
	switch kind {
	case "good":
		return p.Good(text)
	case "bad":
		return p.Bad(text)
	case "doubt":
		return p.Doubt(text)
	case "faint":
		return p.Faint(text)
	default:
		return text
	}
}

func statusWords(l callview.Line) string {
	return cli.Printable(strings.ReplaceAll(l.Status, "_", " "))
}

// what returns the changes of a call, or its arguments if it changed nothing.
func what(l callview.Line) string {
	words := make([]string, 0, len(l.Changes)+1)
	for _, c := range l.Changes {
		words = append(words, c.Verb+" "+callview.Resource(c.Resource))
	}
	if l.More > 0 {
		words = append(words, fmt.Sprintf("%d more", l.More))
	}
	text := strings.Join(words, ", ")
	if text == "" || l.Tool == "shell_run" || l.Tool == "process_run" { // what a program changed does not say what ran
		args := l.Args
		if args == "null" {
			args = ""
		}
		text = strings.Trim(args+"  "+text, " ")
	}
	if l.Reverted != "" && l.Reverted != "none" {
		text += "  (reverted: " + strings.ReplaceAll(l.Reverted, "_", " ") + ")"
	}
	return text
}

// column is a part of a row. It takes width cells, or with width 0 what the
// others leave.
type column struct {
	text  string
	width int
	style func(string) string
}

// row returns a line of exactly so many cells. It leaves out columns from the
// right until the one without a width has room.
func row(width int, columns ...column) string {
	const least = 16
	for {
		left := width
		for _, c := range columns {
			if c.width > 0 {
				left -= c.width + 1
			}
		}
		if left >= least || len(columns) < 3 {
			return join(columns, max(left, 0), width)
		}
		columns = without(columns)
	}
}

// without returns the columns without the last one that has a width.
func without(columns []column) []column {
	for i := len(columns) - 1; i > 0; i-- {
		if columns[i].width > 0 {
			return append(append([]column{}, columns[:i]...), columns[i+1:]...)
		}
	}
	return columns[:1]
}

func join(columns []column, left, width int) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		w := c.width
		if w == 0 {
			w = left
		}
		cells[i] = fit(c.text, w)
		if c.style != nil {
			cells[i] = c.style(cells[i])
		}
	}
	return ansi.Truncate(strings.Join(cells, " "), width, "")
}

// visible escapes what changes the width of a neighbour: marks that follow no
// letter, and selectors of a variant. Terminals disagree about their cells.
func visible(text string) string {
	var b strings.Builder
	last := ' '
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Variation_Selector, r), unicode.In(r, unicode.Mn, unicode.Me) && !unicode.In(last, unicode.L, unicode.Mn, unicode.Me):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			last = ' '
		default:
			b.WriteRune(r)
			last = r
		}
	}
	return b.String()
}

// fit cuts or fills a text to so many cells.
func fit(text string, width int) string {
	text = ansi.Truncate(visible(text), width, "…")
	return text + strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
}

// wrapped returns the lines of a text, none longer than width cells.
func wrapped(text string, width int) []string {
	return strings.Split(ansi.Hardwrap(visible(strings.TrimRight(text, "\n")), max(width, 1), true), "\n")
}
