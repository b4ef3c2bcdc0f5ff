package render

import (
	"fmt"
	"strings"

	"github.com/remit-dev/remit/perm"
)

// Client describes the client of a session. It returns "" if the record names
// none.
func Client(c *perm.ClientFacts) string {
	if c == nil {
		return ""
	}
	var words []string
	add := func(name, what string) {
		if what != "" {
			words = append(words, strings.TrimLeft(name+" "+what, " "))
		}
	}
	add("", c.Surface)
	add("model", c.Model)
	add("confidence", fmt.Sprint(c.ProviderTrust))
	add("capabilities", strings.Join(c.Capabilities, " "))
	if c.Selected != nil {
		words = append(words, strings.TrimRight("selected "+strings.Join(c.Selected, " "), " "))
	}
	add("off", strings.Join(c.Disabled, " "))
	return strings.Join(words, ", ")
}
