// Package define makes tools of definition files: one JSON file for each tool, that says
// all there is to say about it but how it is done.
//
//	{
//	  "schemaVersion": 1,
//	  "id": "com.example.note",
//	  "version": "1.0.0",
//	  "implementation": "example/note",
//	  "function": {
//	    "name": "note",
//	    "description": "Writes a note.",
//	    "strict": true,
//	    "parameters": {
//	      "type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
//	      "required": ["path", "text"], "additionalProperties": false
//	    }
//	  },
//	  "needs": [{"action": "write", "resource": "file://workspace/{path}"}],
//	  "effectClass": "reversible"
//	}
//
// The code stands in the program, by the implementation's key ([Implementation]). The file
// is the one source of what a policy decides on and of what every provider's model is
// shown. [Load] reads all files of a folder and refuses them all, with everything that is
// wrong by file, line and column, or none.
//
// [FromTool] lets a file restrict an existing tool, such as a built-in one: never more
// needs, never a milder effect class. [Write] writes a file to begin with.
//
// [Live] reads a folder again when it changes. A changed definition is another tool, with
// another digest: approvals and grades of the old one do not count for it. Calls that were
// made with the old one are still undone by it.
package define
