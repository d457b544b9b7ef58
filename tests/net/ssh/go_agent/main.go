// A peer built on golang.org/x/crypto/ssh, as the agents of the Go product are. Modes:
//
//	echo     opens a channel of type "mcp" and sends every line back
//	flood    the same channel, lines without end
//	refused  tries everything that the gateway must refuse; prints one line each
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func dial(address, user, keyPath string) *ssh.Client {
	text, err := os.ReadFile(keyPath)
	if err != nil {
		fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		fatal(err)
	}
	client, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
		User:            user,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		fatal(err)
	}
	return client
}

func open(client *ssh.Client) ssh.Channel {
	channel, requests, err := client.OpenChannel("mcp", nil)
	if err != nil {
		fatal(err)
	}
	go ssh.DiscardRequests(requests)
	return channel
}

func tryOpen(client *ssh.Client, name string, payload []byte) {
	channel, _, err := client.OpenChannel(name, payload)
	if err != nil {
		fmt.Printf("open %s: refused\n", name)
		return
	}
	fmt.Printf("open %s: accepted\n", name)
	channel.Close()
}

func tryRequest(channel ssh.Channel, name string, payload []byte) {
	accepted, err := channel.SendRequest(name, true, payload)
	if err != nil {
		fmt.Printf("request %s: %v\n", name, err)
	} else {
		fmt.Printf("request %s: %v\n", name, accepted)
	}
}

func tryGlobal(client *ssh.Client, name string, payload []byte) {
	_, _, err := client.SendRequest(name, true, payload)
	if err != nil {
		fmt.Printf("global %s: no answer: %v\n", name, err)
	} else {
		fmt.Printf("global %s: answered\n", name)
	}
}

func refused(client *ssh.Client) {
	forward := ssh.Marshal(struct {
		Address string
		Port    uint32
	}{"127.0.0.1", 0})
	accepted, _, err := client.SendRequest("tcpip-forward", true, forward)
	fmt.Printf("global tcpip-forward: %v %v\n", accepted, err)
	accepted, _, err = client.SendRequest("streamlocal-forward@openssh.com", true, ssh.Marshal(struct{ Path string }{"/tmp/x"}))
	fmt.Printf("global streamlocal-forward: %v %v\n", accepted, err)
	tryOpen(client, "x11", ssh.Marshal(struct {
		Address string
		Port    uint32
	}{"127.0.0.1", 6000}))
	for _, name := range []string{"direct-streamlocal@openssh.com", "auth-agent@openssh.com", "tun@openssh.com", "mc",
		"mcpx", "mcp channel", "MCP", ""} {
		tryOpen(client, name, nil)
	}
	if _, err := client.Dial("tcp", "127.0.0.1:1"); err != nil {
		fmt.Println("dial: refused")
	}
	channel, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		fatal(err)
	}
	go ssh.DiscardRequests(requests)
	command := ssh.Marshal(struct{ Command string }{"id"})
	tryRequest(channel, "exec", command)
	tryRequest(channel, "shell", nil)
	tryRequest(channel, "env", ssh.Marshal(struct{ Name, Value string }{"LD_PRELOAD", "x"}))
	tryRequest(channel, "pty-req", ssh.Marshal(struct {
		Term       string
		A, B, C, D uint32
		Modes      string
	}{"xterm", 80, 24, 0, 0, ""}))
	tryRequest(channel, "x11-req", ssh.Marshal(struct {
		Single           bool
		Protocol, Cookie string
		Screen           uint32
	}{false, "a", "b", 0}))
	tryRequest(channel, "auth-agent-req@openssh.com", nil)
	tryRequest(channel, "subsystem", ssh.Marshal(struct{ Name string }{"sftp"}))
	tryRequest(channel, "subsystem", ssh.Marshal(struct{ Name string }{"mcp2"}))
	tryOpen(client, "session", nil)
	tryOpen(client, "mcp", nil)
	tryRequest(channel, "subsystem", ssh.Marshal(struct{ Name string }{"mcp"}))
	// The channel is in use now.
	tryRequest(channel, "subsystem", ssh.Marshal(struct{ Name string }{"mcp"}))
	tryRequest(channel, "exec", command)
	tryOpen(client, "session", nil)
	tryOpen(client, "mcp", nil)
	accepted, _, err = client.SendRequest("tcpip-forward", true, forward)
	fmt.Printf("global tcpip-forward: %v %v\n", accepted, err)
	tryGlobal(client, "keepalive@openssh.com", nil)
	tryGlobal(client, "unheard-of@example.com", nil)
	tryRequest(channel, "keepalive@openssh.com", nil)
	fmt.Fprintln(channel, "still alive")
	line, err := bufio.NewReader(channel).ReadString('\n')
	fmt.Printf("echo: %s %v\n", strings.TrimSpace(line), err)
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: go_agent MODE ADDRESS USER KEYFILE")
		os.Exit(2)
	}
	client := dial(os.Args[2], os.Args[3], os.Args[4])
	switch os.Args[1] {
	case "echo":
		channel := open(client)
		if _, err := io.Copy(channel, channel); err != nil {
			fatal(err)
		}
	case "flood":
		channel := open(client)
		line := strings.Repeat("x", 2000) + "\n"
		for {
			if _, err := io.WriteString(channel, line); err != nil {
				fatal(err)
			}
		}
	case "refused":
		refused(client)
	default:
		fmt.Fprintln(os.Stderr, "unknown mode")
		os.Exit(2)
	}
}
