package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// Limits of the program output in the answer of a run: lines of each stream,
// and characters of a line.
const (
	firstLines = 5
	lastLines  = 10
	lineWidth  = 200
)

// Program is the result of a program, as the tools that run programs return it.
type Program struct {
	Code      *int     `json:"exit_code"`
	Signal    string   `json:"signal"`
	Stdout    *string  `json:"stdout"`
	Stderr    *string  `json:"stderr"`
	Dropped   int64    `json:"dropped"`
	LeftOut   []string `json:"left_out"`
	Survivors int      `json:"survivors"`
	Sandbox   string   `json:"sandbox"`
	Missing   []string `json:"missing"`
	Hosts     []struct {
		Origin         string `json:"origin"`
		Sent, Received int64
		Connections    int
	} `json:"hosts"`
	Restrictions []struct {
		Rule string `json:"rule"`
		Text string `json:"text"`
	} `json:"restrictions"`
}

// ProgramOf decodes an output. It returns false if the output is not that of a
// program. The journal stores some outputs with a text beside them; ProgramOf
// reads both forms.
func ProgramOf(output json.RawMessage) (Program, bool) {
	var beside struct {
		JSON json.RawMessage `json:"json"`
	}
	if json.Unmarshal(output, &beside) == nil && beside.JSON != nil {
		output = beside.JSON
	}
	var e Program
	err := json.Unmarshal(output, &e)
	return e, err == nil && e.Code != nil && e.Stdout != nil && e.Stderr != nil && e.Sandbox != ""
}

// Failed reports whether the program exited with a code other than 0, or died
// of a signal.
func (e Program) Failed() bool { return e.Signal != "" || e.Code != nil && *e.Code != 0 }

// Result formats the exit code, or the signal that ended the program.
func (e Program) Result() string {
	if e.Signal != "" {
		return "ended by a signal: " + cli.Printable(e.Signal)
	}
	return fmt.Sprintf("exit code %d", *e.Code)
}

// Notes lists what remit did not apply or keep, and the sandbox rules that the
// program met.
func (e Program) Notes() (all []string) {
	for _, what := range e.LeftOut {
		all = append(all, "not applied: "+what)
	}
	for _, h := range e.Hosts {
		if h.Connections > 0 {
			all = append(all, fmt.Sprintf("network: %s: %d bytes sent, %d received", h.Origin, h.Sent, h.Received))
		}
	}
	for _, met := range e.Restrictions {
		all = append(all, "sandbox: "+met.Text)
	}
	if e.Dropped > 0 {
		all = append(all, fmt.Sprintf("not kept: %d bytes out of the middle of the output", e.Dropped))
	}
	if e.Survivors > 0 {
		all = append(all, "ended: "+cli.Count(e.Survivors, "program")+" that it left running")
	}
	return all
}

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
func WriteProgram(p cli.Style, w io.Writer, e Program, show string) {
	cut := false
	write := func(label, text string) {
		_, _ = fmt.Fprintln(w, "     "+p.Faint(fmt.Sprintf("%-6s", label))+text)
	}
	for _, s := range []struct{ label, text string }{{"out", *e.Stdout}, {"err", *e.Stderr}} {
		label := s.label
		line := func(text string) {
			short := cli.Clip(cli.Printable(text), lineWidth)
			cut = cut || short != cli.Printable(text)
			write(label, short)
			label = ""
		}
		first, last, left := shortened(s.text)
		for _, text := range first {
			line(text)
		}
		if left > 0 {
			cut = true
			write("", p.Faint(fmt.Sprintf("… %d lines left out", left)))
		}
		for _, text := range last {
			line(text)
		}
	}
	for _, note := range e.Notes() {
		write("note", p.Doubt(cli.Printable(note)))
	}
	if e.Failed() || cut {
		write("show", "remit show "+show)
	}
}
