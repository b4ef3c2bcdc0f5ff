package startup

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm"
)

// Client holds the flags that describe the client of a session.
type Client struct {
	Facts perm.ClientFacts
	Set   bool // any of the flags is set
}

// clientFlagNames returns the names of these flags.
func clientFlagNames() []string {
	return []string{"surface", "model", "capability", "provider-trust", "select", "disable"}
}

// AddClientFlags adds the flags that describe the client.
func AddClientFlags(cmd *cobra.Command, s *Client) {
	flags, c := cmd.Flags(), &s.Facts
	flags.StringVar(&c.Surface, "surface", "", "`KIND` of session that shows the tools, such as chat; a tool can require a kind")
	flags.StringVar(&c.Model, "model", "", "`NAME` of the model that gets the tools, for the policy")
	flags.StringArrayVar(&c.Capabilities, "capability", nil, "capability `C` of the model, such as vision; a tool can require capabilities")
	flags.IntVar(&c.ProviderTrust, "provider-trust", 0, "trust in the model's provider with results, `N` from 0 to 1000 thousandths; a tool can require a minimum")
	flags.StringArrayVar(&c.Selected, "select", nil, "offer only tools with the name or tag `T` (default: all)")
	flags.StringArrayVar(&c.Disabled, "disable", nil, "do not offer tools with the name or tag `T`")
}

// ReadFlags records whether a flag is set, and rejects invalid values.
func (s *Client) ReadFlags(cmd *cobra.Command) error {
	for _, name := range clientFlagNames() {
		s.Set = s.Set || cmd.Flags().Changed(name)
	}
	if n := s.Facts.ProviderTrust; n < 0 || n > 1000 {
		return cli.UsageProblem(fmt.Sprintf("--provider-trust %d is no confidence; valid are 0 to 1000, in thousandths", n))
	}
	for name, list := range map[string][]string{"capability": s.Facts.Capabilities, "select": s.Facts.Selected, "disable": s.Facts.Disabled} {
		if slices.Contains(list, "") {
			return cli.UsageProblem("--" + name + " is empty; is a variable not set?")
		}
	}
	return nil
}

// SessionOptions returns the flags as options of a new session.
func (s *Client) SessionOptions() []agent.SessionOption {
	if !s.Set {
		return nil
	}
	return []agent.SessionOption{agent.ClientProfile(s.Facts)}
}
