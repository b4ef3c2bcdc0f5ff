package perm

// ScriptFacts describes what the script of a call runs, as far as parsing can
// tell. It informs a policy and bounds nothing. Only the sandbox bounds a
// program.
type ScriptFacts struct {
	Commands  []CommandFacts  `json:"commands"`        // in the order of the text, including functions, branches and substitutions
	Redirects []RedirectFacts `json:"redirects"`       // files that the script opens itself
	Dynamic   bool            `json:"dynamic"`         // some of it is known only at run time
	Error     string          `json:"error,omitempty"` // the script cannot be parsed: nothing is known, and dynamic is true
}

// CommandFacts is one command of a script.
type CommandFacts struct {
	Program *string   `json:"program"` // null: known only at run time
	Args    []*string `json:"args"`    // null: known only at run time, and can be none or several
}

// RedirectFacts is a file that a script opens.
type RedirectFacts struct {
	Op   string  `json:"op"`   // as written, such as > or >>
	Path *string `json:"path"` // null: known only at run time
}
