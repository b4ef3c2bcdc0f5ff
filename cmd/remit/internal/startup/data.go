package startup

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
)

// Data holds the flags of the data of a new session.
type Data struct {
	pairs []string
	file  string
}

// AddDataFlags adds the flags of the data of a new session.
func AddDataFlags(cmd *cobra.Command, d *Data) {
	cmd.Flags().StringArrayVar(&d.pairs, "data", nil, "fact about the task, as `NAME=TEXT`: rules read it as input.session.data.NAME")
	cmd.Flags().StringVar(&d.file, "data-file", "", "`FILE` with a JSON object of such facts")
}

// Options returns the session option of the data. It returns none without
// flags.
func (d *Data) Options() ([]agent.SessionOption, error) {
	facts, err := d.facts()
	if err != nil || facts == nil {
		return nil, err
	}
	return []agent.SessionOption{agent.Data(facts)}, nil
}

// Check rejects data that no session takes.
func (d *Data) Check() error {
	_, err := d.facts()
	return err
}

// Set reports whether a flag is used.
func (d *Data) Set() bool { return len(d.pairs) > 0 || d.file != "" }

// CheckSame returns an error if the flags say other data than a session has.
func (d *Data) CheckSame(s *agent.Session) error {
	facts, err := d.facts()
	if err != nil {
		return err
	}
	if text, err := canon.Marshal(facts); err != nil || string(text) != string(s.Data()) {
		return errOtherData()
	}
	return nil
}

func errOtherData() error {
	return cli.UsageProblem("--data and --data-file are of a new session; one that goes on has the data that it began with")
}

// facts returns the data of the flags, or nil without flags.
func (d *Data) facts() (map[string]json.RawMessage, error) {
	if !d.Set() {
		return nil, nil
	}
	facts := map[string]json.RawMessage{}
	if d.file != "" {
		text, err := os.ReadFile(d.file)
		if err == nil {
			err = canon.Decode(text, &facts)
		}
		if err != nil {
			return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--data-file %q cannot be used", d.file), Why: cli.PlainError(err), Fix: "write a JSON object"}
		}
		if facts == nil {
			return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("--data-file %q cannot be used", d.file), Why: "it holds null", Fix: "write a JSON object"}
		}
	}
	for _, pair := range d.pairs {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, cli.UsageProblem(fmt.Sprintf("--data %q: must be NAME=TEXT", pair))
		}
		if _, twice := facts[name]; twice {
			return nil, cli.UsageProblem(fmt.Sprintf("--data %q: the name has a value already", name))
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		facts[name] = text
	}
	return facts, nil
}
