package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// openTerminal opens the terminal itself, which is where a person is also when
// input and output lead elsewhere.
func openTerminal() (io.ReadWriteCloser, error) {
	if runtime.GOOS == "windows" {
		return os.OpenFile("CONIN$", os.O_RDWR, 0)
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}

// textStyle colours text, or leaves it alone where nobody sees colours.
type textStyle bool

func (a *app) paint() textStyle { return textStyle(a.terminal && a.env("NO_COLOR") == "") }

func (a *app) paintErr() textStyle { return textStyle(a.terminalErr && a.env("NO_COLOR") == "") }

func (p textStyle) in(code, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p textStyle) good(text string) string  { return p.in("32", text) }
func (p textStyle) bad(text string) string   { return p.in("31", text) }
func (p textStyle) doubt(text string) string { return p.in("33", text) }
func (p textStyle) faint(text string) string { return p.in("2", text) }
func (p textStyle) bold(text string) string  { return p.in("1", text) }

// problem writes the lines of a problem that have something to say.
func (p textStyle) problem(w io.Writer, prefix string, pr *problem) {
	_, _ = fmt.Fprintln(w, p.bad(prefix)+printable(pr.what))
	p.details(w, pr)
}

// details writes why, how to mend it, and the id.
func (p textStyle) details(w io.Writer, pr *problem) {
	show, fix := "", "fix"
	if pr.denied {
		fix = "allow"
	}
	if pr.id != "" {
		show = "remit show " + pr.id
	}
	for _, l := range [][2]string{{"why", pr.why}, {fix, pr.fix}, {"show", show}} {
		if l[1] != "" {
			_, _ = fmt.Fprintln(w, "     "+p.faint(fmt.Sprintf("%-6s", l[0]))+printable(l[1]))
		}
	}
}

// printable writes characters that would steer a terminal as escapes: texts of
// tools, files and policies are shown, never obeyed. Line ends become spaces.
func printable(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// clip cuts a text that is longer than n characters.
func clip(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
