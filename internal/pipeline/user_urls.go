package pipeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/remit-dev/remit/internal/urlscan"
	"github.com/remit-dev/remit/perm"
)

// mostURLs bounds the URLs of a call that a policy sees. URLs that the user did
// not provide come first, so they are the last to be cut.
const mostURLs = 100

// addUserURLs adds to a request the URLs that the call names, and for each
// whether it is user-provided. For a connect it adds whether a user-provided
// URL leads there. It does nothing if the engine says that it does not read
// this.
func (l *Pipeline) addUserURLs(ctx context.Context, req *perm.Request) error {
	if e, ok := l.engine().(interface{ ReadsURLs() bool }); ok && !e.ReadsURLs() {
		return nil
	}
	req.Call.URLs = []perm.URLFacts{}
	var mentions []urlscan.Match
	for text := range urlscan.Texts(req.Call.Args) {
		mentions = append(mentions, urlscan.Find(text)...)
	}
	to, leads := "", false
	if req.Access.Action == perm.Connect {
		to, leads = urlscan.Canonical(req.Access.Resource.Text)
	}
	if len(mentions) == 0 && !leads {
		return nil
	}
	has, err := l.p.Facts.UserProvided(ctx)
	if err != nil {
		return err
	}
	if leads {
		given := has(urlscan.Resource(to), true)
		req.Access.UserProvided = &given
	}
	req.Call.URLs = urlFacts(mentions, has)
	return nil
}

// urlFacts returns the facts of each URL, once.
func urlFacts(mentions []urlscan.Match, has func(string, bool) bool) []perm.URLFacts {
	facts := make([]perm.URLFacts, 0, len(mentions))
	for _, m := range mentions {
		given := slices.ContainsFunc(m.Forms, func(url string) bool { return has(url, false) })
		facts = append(facts, perm.URLFacts{URL: m.Text, UserProvided: given})
	}
	slices.SortFunc(facts, func(a, b perm.URLFacts) int {
		if a.UserProvided != b.UserProvided {
			if b.UserProvided {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.URL, b.URL)
	})
	facts = slices.Compact(facts)
	return facts[:min(len(facts), mostURLs)]
}
