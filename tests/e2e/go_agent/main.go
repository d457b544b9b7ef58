// Answers as the agents of the Go product do: a channel of type "mcp", one JSON object a line, nothing but tools/list
// and tools/call, and results that say what happened in their text alone.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

type request struct {
	ID     any    `json:"id"`
	Method string `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type response struct {
	Version string `json:"jsonrpc"`
	Result  any    `json:"result,omitempty"`
	Error   *fault `json:"error,omitempty"`
	ID      any    `json:"id"`
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "go_agent:", err)
	os.Exit(1)
}

func tool(name string) map[string]any {
	return map[string]any{"name": name, "description": name, "schemaVersion": "1", "inputSchema": map[string]any{"type": "object"}}
}

func text(line string) any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": line}}}
}

func answer(r request) response {
	reply := response{Version: "2.0", ID: r.ID}
	switch {
	case r.Method == "tools/list":
		reply.Result = map[string]any{"tools": []any{tool("get_metrics"), tool("run_command"), tool("read_logs")}}
	case r.Method == "tools/call" && r.Params.Name == "get_metrics":
		reply.Result = text(`{"cpu_usage_percent":1.5}`)
	case r.Method == "tools/call" && r.Params.Name == "run_command":
		reply.Result = text("Command failed/rejected: command \"x\" is not in the approved allowlist\nOutput:\n")
	case r.Method == "tools/call" && r.Params.Name == "read_logs":
		reply.Result = text("Command failed/rejected: command failed: exit status 1\nOutput:\nno log")
	default:
		reply.Error = &fault{-32601, "Method not found: " + r.Method}
	}
	return reply
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go_agent ADDRESS USER KEYFILE")
		os.Exit(2)
	}
	key, err := os.ReadFile(os.Args[3])
	if err != nil {
		fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		fatal(err)
	}
	client, err := ssh.Dial("tcp", os.Args[1], &ssh.ClientConfig{
		User:            os.Args[2],
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		fatal(err)
	}
	channel, requests, err := client.OpenChannel("mcp", nil)
	if err != nil {
		fatal(err)
	}
	go ssh.DiscardRequests(requests)
	lines := bufio.NewScanner(channel)
	replies := json.NewEncoder(channel)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fatal(err)
		}
		if r.ID == nil {
			continue
		}
		if err := replies.Encode(answer(r)); err != nil {
			fatal(err)
		}
	}
}
