package history_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/perm"
)

// An engine that is not made of rules asks the same questions.
func ExampleSource() {
	atMostTwo := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		answer, err := r.Session.Past.Find(history.Query{Tool: "mail_*", Window: "1h", Now: r.Time})
		if err != nil || answer.Count >= 2 {
			return perm.NewDecision(perm.Deny, perm.Details{}), err
		}
		return perm.NewDecision(perm.Allow, perm.Details{}), nil
	})
	d, err := atMostTwo(context.Background(), perm.Request{Session: perm.SessionFacts{Past: three{}}})
	fmt.Println(d.Effect(), err)
	// Output: deny <nil>
}

// three is the history of a session with three mails.
type three struct{}

func (three) Find(history.Query) (history.Answer, error) {
	return history.Answer{Count: 3, Last: 3}, nil
}
