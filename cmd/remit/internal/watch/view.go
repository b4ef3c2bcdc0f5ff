package watch

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/callview"
)

// entry is a line of the list: a heading, or something that can be selected.
type entry struct {
	key   string // ID; empty: a heading
	waits bool
	draw  func(width int) string
}

// entries returns the list.
func (m *model) entries() (all []entry) {
	head := func(text string, n int) {
		if n > 0 {
			all = append(all, entry{draw: func(int) string { return m.style.Bold(text) }})
		}
	}
	answered := m.answered()
	for _, part := range []struct {
		title string
		lines []waitLine
	}{{"waits for you", m.waiting[:len(m.waiting)-answered]}, {"answered, not resumed yet", m.waiting[len(m.waiting)-answered:]}} {
		head(part.title, len(part.lines))
		for _, l := range part.lines {
			all = append(all, entry{l.ID, true, func(w int) string { return m.waitRow(w, l) }})
		}
	}
	head("runs", len(m.running))
	for _, r := range m.running {
		all = append(all, entry{key: r.ID, draw: func(w int) string { return m.runRow(w, r) }})
	}
	head("ended", len(m.ended))
	for i := len(m.ended) - 1; i >= 0; i-- {
		e := &m.ended[i]
		all = append(all, entry{key: e.ID, draw: func(w int) string { return m.endedRow(w, e) }})
	}
	return all
}

// answered returns how many answered requests were not resumed. They are the
// last ones.
func (m *model) answered() (n int) {
	for _, l := range m.waiting {
		if l.Answer != "" {
			n++
		}
	}
	return n
}

// wide is the width from which a row has the ID of the call.
const wide = 110

func (m *model) idColumn(width int, id string) []column {
	if width < wide {
		return nil
	}
	return []column{{text: id, width: 14, style: m.style.Faint}}
}

func (m *model) waitRow(width int, l waitLine) string {
	tool, text := l.Tool, l.Args
	if tool == "" {
		tool, text = "commit", "of "+l.Txn
	}
	if l.Answer != "" {
		text += "  " + l.Answer
	}
	columns := append([]column{{"…", 1, m.style.Doubt}, {cli.Printable(tool), 14, nil}, {text: text}}, m.idColumn(width, l.ID)...)
	return row(width, append(columns, column{age(m.now, l.Since), 8, m.style.Faint}, column{cli.Printable(l.Who), 12, m.style.Faint})...)
}

func (m *model) runRow(width int, r callview.RunningCall) string {
	columns := append([]column{{"▸", 1, m.style.Doubt}, {cli.Printable(r.Tool), 14, nil}, {text: what(r.Line)}}, m.idColumn(width, r.ID)...)
	return row(width, append(columns, column{age(m.now, r.Began), 8, m.style.Faint}, column{r.Class, 12, m.style.Faint})...)
}

func (m *model) endedRow(width int, e *endedRow) string {
	sign := func(text string) string { return strings.Replace(text, "*", mark(m.style, e.Line), 1) }
	text := what(e.Line)
	if e.Status != "done" {
		text = statusWords(e.Line) + "  " + text
	}
	colour := func(text string) string { return text }
	if e.Kind != "good" {
		colour = func(text string) string { return styled(m.style, e.Kind, text) }
	}
	columns := append([]column{{"*", 1, sign}, {cli.Printable(e.Tool), 14, nil}, {text: text, style: colour}}, m.idColumn(width, e.ID)...)
	columns = append(columns, column{e.Took, 8, m.style.Faint}, column{e.at.Local().Format("15:04:05"), 8, m.style.Faint}, column{e.Class, 12, m.style.Faint})
	return row(width, columns...)
}

// age formats how long ago something began.
func age(now, since time.Time) string {
	d := max(now.Sub(since), 0)
	if d < time.Minute {
		return strconv.Itoa(int(d/time.Second)) + " s"
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.View{AltScreen: true}
	if m.width < 1 || m.height < 1 {
		return v
	}
	lines := []string{m.header()}
	body := m.body()
	if m.pane != nil {
		lines, body = []string{m.style.Bold(fit(m.pane.title, m.width))}, m.paneBody()
	}
	room := max(m.height-2, 0)
	lines = append(lines, body[:min(len(body), room)]...)
	for len(lines) < room+1 {
		lines = append(lines, "")
	}
	if m.height > 1 {
		lines = append(lines, m.footer())
	}
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, m.width, "")
	}
	v.SetContent(strings.Join(lines, "\n"))
	return v
}

func (m *model) header() string {
	answered := m.answered()
	counts := fmt.Sprintf("%d waiting, ", len(m.waiting)-answered)
	if answered > 0 {
		counts += fmt.Sprintf("%d answered, ", answered)
	}
	counts += fmt.Sprintf("%d running, %s ended", len(m.running), m.countWords())
	left := fit("remit watch  "+cli.Printable(m.title), max(m.width-ansi.StringWidth(counts)-1, 0))
	return m.style.Bold(left) + " " + counts
}

// countWords says how many calls have ended. The calls before the first page are
// not counted.
func (m *model) countWords() string {
	if m.older {
		return strconv.Itoa(m.total) + "+"
	}
	return strconv.Itoa(m.total)
}

// body returns the visible part of the list. The selected entry is in it.
func (m *model) body() (lines []string) {
	all := m.entries()
	if len(all) == 0 {
		switch {
		case !m.loaded:
			return []string{"reading the journal"}
		default:
			return []string{"no call has ended yet; calls appear here as agents make them"}
		}
	}
	room := max(m.height-2, 1)
	here := m.place(all)
	m.top = max(min(m.top, here, len(all)-room), here-room+1, 0)
	if here <= 1 { // the heading above the first entry
		m.top = 0
	}
	for i := m.top; i < min(len(all), m.top+room); i++ {
		sign := "  "
		if i == here && all[i].key != "" {
			sign = m.style.Bold("> ")
		}
		if all[i].key == "" {
			sign = ""
		}
		lines = append(lines, sign+all[i].draw(max(m.width-2, 1)))
	}
	return lines
}

// paneLines returns the lines of the open text.
func (m *model) paneLines() []string { return wrapped(m.pane.text, m.width) }

func (m *model) paneBody() []string {
	lines := m.paneLines()
	m.pane.top = max(min(m.pane.top, len(lines)-(m.height-2)), 0)
	m.pane.read = m.pane.read || m.height > 2 && m.pane.top+m.height-2 >= len(lines)
	return lines[m.pane.top:]
}

// footer returns the last line: a question, or what can be done.
func (m *model) footer() string {
	switch {
	case m.busy != "":
		return m.style.Doubt(m.busy + " …")
	case m.pane != nil:
		return m.paneFooter()
	case m.damage != "":
		return m.style.Bad(visible(cli.Printable(m.damage)))
	default:
		return m.style.Faint("? keys  q quit  enter details  a approve  d deny  u undo")
	}
}

func (m *model) paneFooter() string {
	p := m.pane
	if !p.mayAnswer() && p.asks != asksNothing {
		n := len(m.paneLines())
		return m.style.Doubt(fmt.Sprintf("%d of %d: read to the end, then answer  space more  n no", min(p.top+m.height-2, n), n))
	}
	switch p.asks {
	case asksApprove:
		if p.request.Covers {
			return m.style.Doubt("Approve it?  y yes, with what it covers  o only this call  n no")
		}
		return m.style.Doubt("Approve it?  y yes  n no")
	case asksDeny:
		return m.style.Doubt("Deny it: enter  keep it: esc  reason: ") + tail(visible(cli.Printable(p.why)), max(m.width-41, 1)) + "_"
	case asksRevert:
		return m.style.Doubt("Undo it as planned?  y yes  n no")
	case asksEndPrompt:
		return m.style.Doubt("End what the agent works on, and show the plan?  y yes  n no")
	case asksNothing:
	}
	keys := "esc back  q quit"
	if p.request.Waits {
		keys = "a approve  d deny  " + keys
	}
	if n, room := len(m.paneLines()), m.height-2; n > room {
		keys = fmt.Sprintf("%d-%d of %d  ", p.top+1, min(p.top+room, n), n) + keys
	}
	return m.style.Faint(keys)
}

// tail returns the end of a text that fits into so many cells.
func tail(text string, width int) string {
	return ansi.TruncateLeft(text, max(ansi.StringWidth(text)-width, 0), "")
}
