package perm

// ScriptFacts is what a call's script would run, as far as reading it tells. It is
// said to a policy and bounds nothing: what a program can do is for the sandbox to
// bound.
type ScriptFacts struct {
	Commands  []CommandFacts  `json:"commands"`        // in the order of the text, also those in functions, branches and substitutions
	Redirects []RedirectFacts `json:"redirects"`       // files that it opens by itself
	Dynamic   bool            `json:"dynamic"`         // some of it is only known when it runs
	Error     string          `json:"error,omitempty"` // it cannot be read: nothing is known, and dynamic is true
}

// CommandFacts is one command of a script.
type CommandFacts struct {
	Program *string   `json:"program"` // null: only known when it runs
	Args    []*string `json:"args"`    // null: only known when it runs, and may then be none or several
}

// RedirectFacts is a file that a script opens.
type RedirectFacts struct {
	Op   string  `json:"op"`   // as it is written, such as > or >>
	Path *string `json:"path"` // null: only known when it runs
}
