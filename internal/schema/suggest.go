package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/suggest"
)

// unknownText describes an undeclared name by the declared ones.
func unknownText(name string, known []string) string {
	if len(known) == 0 {
		return "is not known, there are none here"
	}
	const shown = 20
	var quoted []string
	for _, k := range known[:min(len(known), shown)] {
		quoted = append(quoted, strconv.Quote(cut(k)))
	}
	list := strings.Join(quoted, ", ")
	if len(known) > shown {
		list += fmt.Sprintf(" and %d others", len(known)-shown)
	}
	if near := suggest.Name(name, known); near != "" {
		return "is not known, did you mean " + strconv.Quote(cut(near)) + "? known: " + list
	}
	return "is not known, known: " + list
}
