package urlscan

// Href returns a URL of any scheme as the parser writes it.
func Href(text string) (href string, ok bool) {
	u, err := parser.Parse(text)
	if err != nil {
		return "", false
	}
	return u.Href(false), true
}
