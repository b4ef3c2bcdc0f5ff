package origin

import "slices"

// sequences are texts, each as the digests of its words, in which runs of words
// are found.
type sequences[K comparable] struct {
	texts []sequence[K]
	at    map[K][]place
	whole map[ends[K]][]int // texts by their ends
	words int
}

type sequence[K comparable] struct {
	words []K
	calls []string // that returned it; none: it stays
}

// ends are the first and the last word of a text, and the number of its words.
type ends[K comparable] struct {
	first, last K
	count       int
}

type place struct{ text, word int }

// mostCalls bounds the calls that a text is kept for.
const mostCalls = 8

// add adds a text. A text that is there takes no further room.
func (s *sequences[K]) add(words []K, call string, most int) {
	if len(words) == 0 {
		return
	}
	by := ends[K]{words[0], words[len(words)-1], len(words)}
	for _, i := range s.whole[by] {
		if t := &s.texts[i]; slices.Equal(t.words, words) {
			t.returned(call)
			return
		}
	}
	if s.words+len(words) > most {
		return
	}
	if s.at == nil {
		s.at, s.whole = map[K][]place{}, map[ends[K]][]int{}
	}
	s.whole[by] = append(s.whole[by], len(s.texts))
	for i, w := range words {
		s.at[w] = append(s.at[w], place{len(s.texts), i})
	}
	s.texts, s.words = append(s.texts, sequence[K]{words: words, calls: []string{call}}), s.words+len(words)
}

func (t *sequence[K]) returned(call string) {
	switch {
	case len(t.calls) == 0:
		t.calls = []string{call}
	case !slices.Contains(t.calls, call) && len(t.calls) < mostCalls:
		t.calls = append(t.calls, call)
	}
}

// has reports whether a run of words is in one of the texts.
func (s *sequences[K]) has(tokens []string, digest func(string) K) bool {
	if len(s.texts) == 0 {
		return false
	}
	places := s.at[digest(tokens[0])]
	if len(places) == 0 {
		return false
	}
	words := make([]K, len(tokens))
	for i, t := range tokens {
		words[i] = digest(t)
	}
	for _, at := range places {
		t := s.texts[at.text]
		if len(t.calls) > 0 && len(t.words) >= at.word+len(words) && slices.Equal(t.words[at.word:at.word+len(words)], words) {
			return true
		}
	}
	return false
}

// forget removes the texts that only this call returned.
func (s *sequences[K]) forget(call string) {
	for i := range s.texts {
		t := &s.texts[i]
		t.calls = slices.DeleteFunc(t.calls, func(c string) bool { return c == call })
	}
}
