# Files that start programs with the client of an agent. A revert covers the file, and
# not what a client that reads it has started meanwhile.
package remit

import data.remit.workspace.clients

ask contains "a client of agents starts what this file says, outside every sandbox" if {
	clients.file
	input.access.action in {"write", "delete"}
	not observed_change
}
