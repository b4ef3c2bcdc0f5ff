package watch

import (
	tea "charm.land/bubbletea/v2"
)

// maxWhy limits the reason of a denial, in bytes.
const maxWhy = 500

// helpText lists the keys.
const helpText = `On the list
  up, down, k, j     select a call; also page up, page down, home and end
  enter              show all of it: arguments, rule, difference
  a                  of what waits: show it, then approve it
  d                  of what waits: show it, then deny it with a reason
  u                  undo the newest work: first the plan

On a text
  up, down, space    scroll; also page up, page down, home and end
  a, d               approve or deny what it shows
  y, n               answer the question, which comes when no key is pressed
  esc                go back to the list

Everywhere
  ?                  show these keys
  ctrl-z             suspend
  q, ctrl-c          quit

An approval covers the request that you saw. If the policy lets it cover more, o
approves this call alone. The list has the newest 1,000 calls that ended.
`

// key takes a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.pane != nil && m.pane.asks == asksDeny:
		return m.typeWhy(k)
	case name == "q":
		return tea.Quit
	case m.pane != nil:
		return m.paneKey(name)
	default:
		return m.listKey(name)
	}
}

// listKey takes a key on the list.
func (m *model) listKey(name string) tea.Cmd {
	switch name {
	case "?":
		m.pane = &pane{title: "keys", text: helpText}
	case "u":
		return m.openPlan("")
	case "enter":
		return m.open(asksNothing)
	case "a":
		return m.open(asksApprove)
	case "d":
		return m.open(asksDeny)
	default:
		m.move(name)
	}
	return nil
}

// open shows the selected entry. A question is for what waits.
func (m *model) open(then question) tea.Cmd {
	e, ok := m.selected()
	switch {
	case !ok:
		return nil
	case e.waits:
		return m.openRequest(e.key, then)
	case then == asksNothing:
		return m.openCall(e.key)
	default:
		return nil
	}
}

// paneKey takes a key on a text.
func (m *model) paneKey(name string) tea.Cmd {
	p := m.pane
	if p.asks != asksNothing {
		if cmd, taken := m.answerKey(p, name); taken {
			return cmd
		}
	}
	switch name {
	case "esc", "backspace", "left":
		m.pane = nil
	case "enter":
		if p.asks == asksNothing && p.id == "" {
			m.pane = nil
		}
	case "?":
		m.pane = &pane{title: "keys", text: helpText}
	case "n":
		if p.soon != asksNothing {
			_, _ = m.answerKey(p, name)
		}
	case "a":
		p.choose(asksApprove)
	case "d":
		p.choose(asksDeny)
	default:
		m.scroll(name)
	}
	return nil
}

// choose selects the question about what waits.
func (p *pane) choose(q question) {
	if p.request.Waits && p.asks == asksNothing {
		p.soon = q
	}
}

// mayAnswer reports whether the person could read all that an approval or an
// undo is about.
func (p *pane) mayAnswer() bool { return p.read || p.asks != asksApprove && p.asks != asksRevert }

// answerKey takes a key that answers the question of a pane. A question is
// answered once.
func (m *model) answerKey(p *pane, name string) (cmd tea.Cmd, taken bool) {
	switch asks := p.asks; {
	case name == "n" || name == "esc":
		p.asks, p.soon = asksNothing, asksNothing
		if p.id == "" {
			m.pane = nil
		}
		return nil, true
	case name == "o" && asks == asksApprove && p.request.Covers && p.mayAnswer():
		return m.give(p, Reply{Approves: true, Once: true}), true
	case name != "y" || !p.mayAnswer():
		return nil, false
	case asks == asksApprove:
		return m.give(p, Reply{Approves: true}), true
	case asks == asksRevert:
		return m.revert(p.plan), true
	case asks == asksEndPrompt:
		return m.endPrompt(), true
	default:
		return nil, false
	}
}

// typeWhy takes a key of the reason of a denial.
func (m *model) typeWhy(k tea.KeyPressMsg) tea.Cmd {
	p := m.pane
	switch name := k.String(); name {
	case "esc":
		p.asks, p.why = asksNothing, ""
	case "enter":
		return m.give(p, Reply{Why: p.why})
	case "backspace":
		if r := []rune(p.why); len(r) > 0 {
			p.why = string(r[:len(r)-1])
		}
	case "ctrl+u":
		p.why = ""
	case "up", "down", "pgup", "pgdown":
		m.scroll(name)
	default:
		if len(p.why)+len(k.Text) <= maxWhy {
			p.why += k.Text
		}
	}
	return nil
}
