package policydiff

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
)

// globText returns a text that a glob pattern matches, most often.
func globText(r *rand.Rand, pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString([]string{"a", "a/b", "a.txt", "a/b/c"}[r.IntN(4)])
			i++
		case c == '*':
			b.WriteString([]string{"a", "b1", "ab"}[r.IntN(3)])
		case c == '?':
			b.WriteByte('a')
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteByte(pattern[i])
		case c == '{' && strings.Contains(pattern[i:], "}"):
			end := i + strings.IndexByte(pattern[i:], '}')
			words := strings.Split(pattern[i+1:end], ",")
			b.WriteString(globText(r, words[r.IntN(len(words))]))
			i = end
		case c == '[' && strings.Contains(pattern[i:], "]"):
			end := i + strings.IndexByte(pattern[i:], ']')
			if set := strings.TrimLeft(pattern[i+1:end], "!^"); set != "" {
				b.WriteByte(set[r.IntN(len(set))])
			}
			i = end
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// regexText returns a text that a regular expression matches, most often.
func regexText(r *rand.Rand, pattern string) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	writeRegex(r, &b, re.Simplify())
	return b.String()
}

func writeRegex(r *rand.Rand, b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if n := len(re.Rune) / 2; n > 0 {
			i := r.IntN(n)
			from, to := re.Rune[2*i], min(re.Rune[2*i+1], 'z')
			b.WriteRune(from + rune(r.IntN(int(max(to-from, 0))+1)))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
	case syntax.OpAlternate:
		writeRegex(r, b, re.Sub[r.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		n := r.IntN(3)
		switch re.Op {
		case syntax.OpPlus:
			n++
		case syntax.OpQuest:
			n = min(n, 1)
		case syntax.OpRepeat:
			n = min(max(re.Min, n), max(re.Max, re.Min))
		default: // a star
		}
		for range n {
			writeRegex(r, b, re.Sub[0])
		}
	case syntax.OpWordBoundary:
		if b.Len() > 0 && r.IntN(2) == 0 {
			b.WriteByte(' ')
		}
	default:
		for _, sub := range re.Sub {
			writeRegex(r, b, sub)
		}
	}
}
