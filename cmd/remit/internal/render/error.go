package render

import "strings"

// Once removes repeated words at the end of an error text. In "there is no such
// file: open a.txt: no such file" it removes the last part.
func Once(text string) string {
	var kept []string
	for part := range strings.SplitSeq(text, ": ") {
		if !contains(kept, part) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ": ")
}

func contains(kept []string, part string) bool {
	for _, k := range kept {
		if strings.Contains(part, " ") && strings.HasSuffix(k, part) {
			return true
		}
	}
	return false
}
