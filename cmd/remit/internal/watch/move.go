package watch

import "slices"

// place returns the index of the selected entry. If the entry is gone, the one
// at its place is selected.
func (m *model) place(all []entry) int {
	if m.cursor != "" {
		if i := slices.IndexFunc(all, func(e entry) bool { return e.key == m.cursor }); i >= 0 {
			m.at = i
			return i
		}
		i := min(m.at, len(all)-1)
		for ; i > 0 && all[i].key == ""; i-- {
		}
		if all[i].key != "" {
			m.cursor, m.at = all[i].key, i
			return i
		}
	}
	return max(slices.IndexFunc(all, func(e entry) bool { return e.key != "" }), 0)
}

// selected returns the selected entry, if there is one.
func (m *model) selected() (entry, bool) {
	all := m.entries()
	if len(all) == 0 {
		return entry{}, false
	}
	e := all[m.place(all)]
	return e, e.key != ""
}

// move selects another entry. On the first one, the selection follows the
// newest.
func (m *model) move(name string) {
	all := m.entries()
	if len(all) == 0 {
		return
	}
	step := steps(name, max(m.height-3, 1), len(all))
	if step == 0 {
		return
	}
	first := slices.IndexFunc(all, func(e entry) bool { return e.key != "" })
	at, way := m.place(all), 1
	if step < 0 {
		step, way = -step, -1
	}
	for i := at + way; i >= 0 && i < len(all) && step > 0; i += way {
		if all[i].key != "" {
			at, step = i, step-1
		}
	}
	m.cursor, m.at = all[at].key, at
	if at == first {
		m.cursor = ""
	}
}

// scroll moves the open text.
func (m *model) scroll(name string) {
	m.pane.top = max(m.pane.top+steps(name, max(m.height-3, 1), len(m.paneLines())), 0)
}

// steps returns by how many lines a key moves.
func steps(name string, page, all int) int {
	switch name {
	case "up", "k":
		return -1
	case "down", "j":
		return 1
	case "pgup", "b":
		return -page
	case "pgdown", "space", " ", "f":
		return page
	case "home", "g":
		return -all
	case "end", "G", "shift+g":
		return all
	default:
		return 0
	}
}
