package schema

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// CheckPointer returns an error for a JSON pointer that leads to no declared
// place of a value, in which * stands for each element or member. A place below
// a part that declares nothing is valid, and so is every place for a nil Schema.
func (s *Schema) CheckPointer(pointer string) error {
	if s == nil || s.root == nil || pointer == "" {
		return nil
	}
	if pointer[0] != '/' {
		return errors.New("a JSON pointer begins with a slash")
	}
	at := []load{{s.root, 1}}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		loads := expand(at)
		if at = partsAt(loads, token); len(at) > 0 {
			continue
		}
		if isOpen(loads) {
			return nil
		}
		return errors.New(strconv.Quote(cut(token)) + " " + unknownText(token, declaredNames(loads)))
	}
	return nil
}

// partsAt returns the parts that judge a member or an element, or all of them
// for *.
func partsAt(loads []load, token string) (all []load) {
	_, inside := below(loads, token)
	index, err := strconv.Atoi(token)
	for _, l := range loads {
		if token == "*" {
			for _, p := range l.properties {
				inside = appendLoad(inside, p, 1)
			}
			for _, p := range l.patterns {
				inside = appendLoad(inside, p.to, 1)
			}
			for _, p := range l.prefix {
				inside = appendLoad(inside, p, 1)
			}
		}
		if err == nil && index >= 0 && index < len(l.prefix) {
			inside = appendLoad(inside, l.prefix[index], 1)
		} else if token == "*" || err == nil && index >= 0 {
			inside = appendLoad(inside, l.items, 1)
			inside = appendLoad(inside, l.restItems, 1)
		}
	}
	for _, l := range inside {
		if !l.refuses {
			all = append(all, l)
		}
	}
	return all
}

// isOpen reports whether the parts say nothing of what is inside the value.
func isOpen(loads []load) bool {
	has := func(l load) bool {
		scalar := len(l.types) > 0 && !slices.Contains(l.types, "object") && !slices.Contains(l.types, "array")
		closed := l.additional != nil && l.additional.refuses || l.rest != nil && l.rest.refuses
		return scalar || closed || !l.open && (len(l.properties) > 0 || len(l.prefix) > 0 || l.items != nil)
	}
	return !slices.ContainsFunc(loads, has)
}

func declaredNames(loads []load) (names []string) {
	for _, l := range loads {
		for name := range l.properties {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
