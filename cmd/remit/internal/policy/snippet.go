package policy

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
)

// maxSnippet limits the characters of a line in a snippet.
const maxSnippet = 160

// writeSnippet writes the line of a file that a place names, and a mark below
// the column. It writes nothing if the line cannot be read, such as that of a
// built-in pack.
func writeSnippet(p cli.Style, w io.Writer, at string) {
	file, line, column := splitPlace(at)
	text := lineOfFile(file, line)
	if text == "" {
		return
	}
	number := fmt.Sprintf("%5d | ", line)
	_, _ = fmt.Fprintln(w, p.Faint(number)+cli.Clip(cli.Printable(strings.ReplaceAll(text, "\t", "    ")), maxSnippet))
	before := []rune(text)
	if column < 1 || column > len(before)+1 {
		return
	}
	indent := []rune(cli.Printable(strings.ReplaceAll(string(before[:column-1]), "\t", "    ")))
	if len(indent) < maxSnippet {
		_, _ = fmt.Fprintln(w, p.Faint(strings.Repeat(" ", len(number)-2)+"| ")+strings.Repeat(" ", len(indent))+p.Bad("^"))
	}
}

// splitPlace splits "file:line:column" or "file:line". The line is 0 if there is
// none.
func splitPlace(at string) (file string, line, column int) {
	file, last, _ := cutLast(at)
	if before, middle, ok := cutLast(file); ok && middle > 0 {
		return before, middle, last
	}
	return file, last, 0
}

// cutLast cuts a number after the last colon.
func cutLast(text string) (before string, number int, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, 0, false
	}
	number, err := strconv.Atoi(text[i+1:])
	if err != nil || number < 0 {
		return text, 0, false
	}
	return text[:i], number, true
}

// lineOfFile returns a line of a policy file, "" if there is none.
func lineOfFile(name string, line int) string {
	if line < 1 || !strings.HasSuffix(name, ".rego") {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); line-- {
		if line == 1 {
			return strings.TrimSuffix(s.Text(), "\r")
		}
	}
	return ""
}
