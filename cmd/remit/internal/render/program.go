package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// Limits of the program output in the answer of a run: lines of each stream,
// and characters of a line.
const (
	firstLines = 5
	lastLines  = 10
	lineWidth  = 200
)

// Lines splits a stream into lines without line ends.
func Lines(stream string) []string {
	if stream == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(stream, "\n"), "\n")
}

// shortened returns the first and the last lines of a stream, and the number of
// lines between them.
func shortened(stream string) (first, last []string, left int) {
	lines := Lines(stream)
	if left = len(lines) - firstLines - lastLines; left <= 1 { // a note about one line takes as much space as the line
		return lines, nil, 0
	}
	return lines[:firstLines], lines[firstLines+left:], left
}

// WriteProgram writes shortened output of a program, the notes, and the command
// that shows all of it.
func WriteProgram(p cli.Style, w io.Writer, e callview.Program, show string) {
	cut := writeStream(p, w, "out", *e.Stdout)
	cut = writeStream(p, w, "err", *e.Stderr) || cut
	for _, note := range e.Notes() {
		writeRow(p, w, "note", p.Doubt(cli.Printable(note)))
	}
	if e.Failed() || cut {
		writeRow(p, w, "show", "remit show "+show)
	}
}

// WriteResult writes the shortened result of a call that is no program, and the
// command that shows all of it.
func WriteResult(p cli.Style, w io.Writer, text, show string) {
	if writeStream(p, w, "out", text) {
		writeRow(p, w, "show", "remit show "+show)
	}
}

func writeRow(p cli.Style, w io.Writer, label, text string) {
	_, _ = fmt.Fprintln(w, "     "+p.Faint(fmt.Sprintf("%-6s", label))+text)
}

// writeStream writes the first and the last lines of a stream. It reports
// whether it left something out.
func writeStream(p cli.Style, w io.Writer, label, text string) (cut bool) {
	line := func(text string) {
		short := cli.Clip(cli.Printable(text), lineWidth)
		cut = cut || short != cli.Printable(text)
		writeRow(p, w, label, short)
		label = ""
	}
	first, last, left := shortened(text)
	for _, text := range first {
		line(text)
	}
	if left > 0 {
		cut = true
		writeRow(p, w, "", p.Faint(fmt.Sprintf("… %d lines left out", left)))
	}
	for _, text := range last {
		line(text)
	}
	return cut
}
