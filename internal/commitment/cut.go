package commitment

import "bytes"

// PlainName reports whether a field can have a name: printable ASCII without
// quotes and backslashes, as the names of all kinds are.
func PlainName(name []byte) bool {
	for _, c := range name {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return len(name) <= MaxName
}

// cut appends the members of a canonical JSON object. It does not look
// into their values. It returns false for bytes that the names and values alone
// do not determine, so no two bodies have the same fields.
func cut(to []Field, body []byte) ([]Field, bool) {
	rest, ok := bytes.CutPrefix(body, []byte("{"))
	if !ok || string(rest) == "}" {
		return to, ok
	}
	var before []byte
	for first := true; len(rest) > 0 && rest[0] == '"'; first = false {
		name, after, _ := bytes.Cut(rest[1:], []byte(`":`))
		if len(after) == 0 || !PlainName(name) || !first && bytes.Compare(before, name) >= 0 {
			return nil, false
		}
		n := valueLen(after)
		if n <= 0 {
			return nil, false
		}
		to = append(to, Field{})
		f := &to[len(to)-1]
		f.Name, f.Value = name, after[:n:n]
		copy(f.tagged[:], fieldTag)
		if rest, before = after[n:], name; rest[0] == '}' {
			return to, len(rest) == 1
		}
		rest = rest[1:]
	}
	return nil, false
}

// valueLen returns the length of a value up to the comma after it or the end of
// its object, or -1 if neither comes.
func valueLen(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			n := textLen(text[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{', '[':
			depth++
		case ',', '}', ']':
			switch {
			case depth == 0 && c == ']':
				return -1
			case depth == 0:
				return i
			case c != ',':
				depth--
			}
		}
	}
	return -1
}

// textLen returns the length of the string that text begins with, with its
// quotes, or -1 if the string does not end.
func textLen(text []byte) int {
	for start := 1; ; {
		n := bytes.IndexByte(text[start:], '"')
		if n < 0 {
			return -1
		}
		end, escapes := start+n, 0
		for end-escapes > start && text[end-escapes-1] == '\\' {
			escapes++
		}
		if start = end + 1; escapes%2 == 0 {
			return start
		}
	}
}
