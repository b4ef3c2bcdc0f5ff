package gitguard

import (
	"regexp"
	"strings"
)

// credentialKey is a variable whose value is a secret.
var credentialKey = regexp.MustCompile(`(?im)^[ \t]*(?:\[[^\]\n]*\][ \t]*)?[a-z0-9-]*(?:pass|password|passwd|token|secret|extraheader|apikey)[ \t]*=[ \t]*[^ \t\n#;]`)

// credentialURL is a URL with a password, or with a name that is as long as a token.
var credentialURL = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://(?:[^/@:\s]*:[^/@\s]+|[^/@:\s]{20,})@`)

// HoldsCredentials reports whether a configuration of git holds a secret: a URL with
// a password or a token, a header that is sent, a value that is called a password.
// It reads no grammar, so that what git refuses is judged too.
func HoldsCredentials(config []byte) bool {
	text := strings.NewReplacer("\r\n", "\n", "\\\n", "", "\\\r\n", "", `"`, "").Replace(string(config))
	return credentialKey.MatchString(text) || credentialURL.MatchString(text)
}
