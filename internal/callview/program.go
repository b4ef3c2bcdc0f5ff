package callview

import (
	"encoding/json"
	"fmt"
)

// Program is the result of a program, as the tools that run programs return it.
type Program struct {
	Code      *int     `json:"exit_code"`
	Signal    string   `json:"signal"`
	Stdout    *string  `json:"stdout"`
	Stderr    *string  `json:"stderr"`
	Dropped   int64    `json:"dropped"`
	LeftOut   []string `json:"left_out"`
	Survivors int      `json:"survivors"`
	Sandbox   string   `json:"sandbox"`
	Missing   []string `json:"missing"`
	Hosts     []struct {
		Origin         string `json:"origin"`
		Sent, Received int64
		Connections    int
	} `json:"hosts"`
	Restrictions []struct {
		Rule string `json:"rule"`
		Text string `json:"text"`
	} `json:"restrictions"`
}

// ProgramOf decodes an output. It returns false if the output is not that of a
// program. The journal stores some outputs with a text beside them; ProgramOf
// reads both forms.
func ProgramOf(output json.RawMessage) (Program, bool) {
	var beside struct {
		JSON json.RawMessage `json:"json"`
	}
	if json.Unmarshal(output, &beside) == nil && beside.JSON != nil {
		output = beside.JSON
	}
	var e Program
	err := json.Unmarshal(output, &e)
	return e, err == nil && e.Code != nil && e.Stdout != nil && e.Stderr != nil && e.Sandbox != ""
}

// Failed reports whether the program exited with a code other than 0, or died
// of a signal.
func (e Program) Failed() bool { return e.Signal != "" || e.Code != nil && *e.Code != 0 }

// Result formats the exit code, or the signal that ended the program.
func (e Program) Result() string {
	if e.Signal != "" {
		return "ended by a signal: " + oneLine(e.Signal)
	}
	return fmt.Sprintf("exit code %d", *e.Code)
}

// shortResult is Result for a list, of a program that failed.
func (e Program) shortResult() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return e.Result()
}

// Notes lists what remit did not apply or keep, and the sandbox rules that the
// program met.
func (e Program) Notes() (all []string) {
	for _, what := range e.LeftOut {
		all = append(all, "not applied: "+what)
	}
	for _, h := range e.Hosts {
		if h.Connections > 0 {
			all = append(all, fmt.Sprintf("network: %s: %d bytes sent, %d received", h.Origin, h.Sent, h.Received))
		}
	}
	for _, met := range e.Restrictions {
		all = append(all, "sandbox: "+met.Text)
	}
	if e.Dropped > 0 {
		all = append(all, fmt.Sprintf("not kept: %d bytes out of the middle of the output", e.Dropped))
	}
	if e.Survivors > 0 {
		all = append(all, "ended: "+count(e.Survivors, "program")+" that it left running")
	}
	return all
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
