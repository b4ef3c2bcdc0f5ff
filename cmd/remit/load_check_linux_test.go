package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// loadCheck compares what clients wrote down with what remit log --json says. It
// reads nothing else.
type loadCheck struct {
	answered, unanswered int
	outcomes             map[string]int // of the calls that the journal lists
	lost                 []string
}

// settledStatus are the outcomes of a call that is over. One of unknown outcome is
// over too: the journal says that nobody knows.
var settledStatus = map[string]bool{"done": true, "failed": true, "unknown": true, "timeout": true, "cancelled": true, "denied": true, "invalid": true, "verify_failed": true}

func checkLoad(log []byte, notes []sentCall) (c loadCheck, err error) {
	journaled := map[string]string{}
	c.outcomes = map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var txn struct {
			Calls []struct{ Call, Status string } `json:"calls"`
		}
		if err := json.Unmarshal(lines.Bytes(), &txn); err != nil {
			return c, err
		}
		for _, call := range txn.Calls {
			journaled[call.Call] = call.Status
			c.outcomes[call.Status]++
		}
	}
	for _, n := range notes {
		c.see(n, journaled)
	}
	return c, lines.Err()
}

func (c *loadCheck) see(n sentCall, journaled map[string]string) {
	id := namedCall(n.Session, n.ID)
	status, known := journaled[id]
	if n.Status == "" {
		c.unanswered++
	} else {
		c.answered++
	}
	switch {
	case !known && n.Brief && n.Status == "": // the client left before the gateway read the request
	case !known:
		c.lose("call %s of %s (%s) is not in the journal; its client has %q %s", n.ID, n.Session, id, n.Status, n.Why)
	case n.Status != "" && n.Call != id:
		c.lose("call %s of %s was told the id %s, want %s", n.ID, n.Session, n.Call, id)
	case n.Status != "" && status != n.Status:
		c.lose("call %s was told %s, and the journal says %s", id, n.Status, status)
	case !settledStatus[status]:
		c.lose("call %s is %q in the journal", id, status)
	}
}

func (c *loadCheck) lose(format string, args ...any) {
	c.lost = append(c.lost, fmt.Sprintf(format, args...))
}

// namedCall is the id of a call that its client named, as docs/reference/records.md has it.
func namedCall(session, id string) string {
	_, digits, _ := strings.Cut(string(canon.Sum("remit/call-id/v1", []byte(session), []byte(id))), ":")
	return "c_" + digits[:32]
}
