package state

import (
	"net/url"
	"strings"
)

// Reasons to refuse a location.
const (
	noLocation  = "it is no URL of PostgreSQL"
	hasPassword = "it holds a password, which other users can read in the list of processes, and child processes inherit"
)

// checkLocation returns why a location of a journal is refused; "" accepts it. A
// location is shown in messages and hints, so only the form that is documented
// passes: what the driver would accept too can have a password at places that no
// reader expects.
func checkLocation(location string) (why string) {
	scheme, rest, _ := strings.Cut(location, "://")
	u, err := url.Parse(location)
	if err != nil || scheme != "postgres" && scheme != "postgresql" || rest == "" || u.Fragment != "" {
		return noLocation
	}
	settings, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return noLocation
	}
	if _, has := u.User.Password(); has || strings.Contains(u.User.Username(), ":") {
		return hasPassword
	}
	if strings.ContainsAny(strings.TrimPrefix(u.Path, "/"), "/:@") {
		return noLocation
	}
	for name := range settings {
		if strings.Contains(strings.ToLower(name), "password") {
			return hasPassword
		}
	}
	return ""
}
