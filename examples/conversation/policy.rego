# Beside the workspace policy: somebody looks at each deletion, though it could be taken back.
package remit

ask contains "somebody looks at what is deleted" if input.access.action == "delete"
