package diff

import (
	"context"
	"fmt"
	"strings"
)

// Summary returns the diff as one text for people, of about limit bytes at
// most: the difference of each resource, then what no difference shows. It says
// what it leaves out. name returns the name of a resource in the text.
func (d Diff) Summary(ctx context.Context, name func(resource string) string, limit int) (string, error) {
	var b strings.Builder
	left := 0
	for _, delta := range d.Deltas {
		if b.Len() >= limit {
			left++
			continue
		}
		text, err := delta.Text(ctx, name(delta.Resource))
		if err != nil {
			return "", err
		}
		b.WriteString(cut(text.Short, limit-b.Len()))
	}
	if left > 0 {
		fmt.Fprintf(&b, "%d more changed resources are left out\n", left)
	}
	for _, line := range d.beside() {
		if b.Len() >= 2*limit {
			b.WriteString("more calls are left out\n")
			break
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// beside describes what no difference of resources shows.
func (d Diff) beside() (lines []string) {
	for _, u := range d.Untracked {
		lines = append(lines, fmt.Sprintf("call %s of %s: what a %s call does outside files is not shown\n", u.Call, u.Tool, u.Class))
	}
	for _, u := range d.Held {
		lines = append(lines, fmt.Sprintf("call %s of %s: held until the commit, nothing of it has happened\n", u.Call, u.Tool))
	}
	for _, c := range d.Erased {
		lines = append(lines, fmt.Sprintf("call %s: its records were erased\n", c))
	}
	return lines
}

// cut returns the whole lines of a text that fit into limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[:limit]
	end := strings.LastIndexByte(text, '\n') + 1
	return text[:end] + "the rest of this difference is left out\n"
}
