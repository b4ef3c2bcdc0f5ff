package gitguard

import (
	"regexp"
	"strings"
	"sync"
)

// credentialKey matches a variable with a secret value.
var credentialKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?im)^[ \t]*(?:\[[^\]\n]*\][ \t]*)?[a-z0-9-]*(?:pass|password|passwd|token|secret|extraheader|apikey)[ \t]*=[ \t]*[^ \t\n#;]`)
})

// credentialURL matches a URL with a password, or with a name that is as long
// as a token.
var credentialURL = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://(?:[^/@:\s]*:[^/@\s]+|[^/@:\s]{20,})@`)
})

// HoldsCredentials reports whether a git configuration contains a secret: a URL
// with a password or a token, a header, or a value whose name says password. It
// does not parse the grammar, so it also judges text that git refuses.
func HoldsCredentials(config []byte) bool {
	text := strings.NewReplacer("\r\n", "\n", "\\\n", "", "\\\r\n", "", `"`, "").Replace(string(config))
	return credentialKey().MatchString(text) || credentialURL().MatchString(text)
}
