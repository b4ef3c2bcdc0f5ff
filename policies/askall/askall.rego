# Every step needs approval: for a first trial of an agent, or for a machine where
# nothing may happen unseen. Denied files stay denied.
package remit

import data.remit.workspace.paths

ask contains "this policy asks about everything" if input.purpose in {"run", "apply"}

allow contains "only what runs is asked about" if input.purpose in {"verify", "list"}

ask contains "a revert needs approval too" if input.purpose == "revert"

deny contains "the history of the repository is out of reach" if paths.git

deny contains "files that usually hold secrets are out of reach" if paths.secret

mask contains pattern if some pattern in paths.masked

hint contains "each call waits for a person: say before it what it is for, and make few of them" if {
	input.purpose in {"run", "apply"}
}
