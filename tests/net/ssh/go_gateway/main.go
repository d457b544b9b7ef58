// A gateway built on golang.org/x/crypto/ssh, as the Go product's is. It lets anybody in, prints the port that it
// listens on, and serves one connection. Modes:
//
//	hostile  asks the agent for all that it must refuse, in masses; prints one line each; then an echo
//	rekey    exchanges keys every 256 KiB; sends back every line
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func accept(config *ssh.ServerConfig) (*ssh.ServerConn, ssh.Channel) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	connection, err := listener.Accept()
	if err != nil {
		fatal(err)
	}
	client, channels, globals, err := ssh.NewServerConn(connection, config)
	if err != nil {
		fatal(err)
	}
	go ssh.DiscardRequests(globals)
	channel, requests, err := (<-channels).Accept()
	if err != nil {
		fatal(err)
	}
	// The subsystem.
	if err := (<-requests).Reply(true, nil); err != nil {
		fatal(err)
	}
	go ssh.DiscardRequests(requests)
	return client, channel
}

func hostile(client *ssh.ServerConn, channel ssh.Channel) {
	origin := ssh.Marshal(struct {
		Address    string
		Port       uint32
		Originator string
		From       uint32
	}{"127.0.0.1", 22, "127.0.0.1", 1})
	for _, name := range []string{"session", "mcp", "x11", "forwarded-tcpip", "direct-tcpip", "auth-agent@openssh.com",
		"forwarded-streamlocal@openssh.com", "tun@openssh.com", "unheard-of", ""} {
		opened := 0
		for i := 0; i < 200; i++ {
			if _, _, err := client.OpenChannel(name, origin); err == nil {
				opened++
			} else if _, refused := err.(*ssh.OpenChannelError); !refused {
				fatal(err)
			}
		}
		fmt.Printf("open %s: %d of 200\n", name, opened)
	}
	for _, name := range []string{"tcpip-forward", "streamlocal-forward@openssh.com", "hostkeys-00@openssh.com", "unheard-of@example.com"} {
		granted := 0
		for i := 0; i < 200; i++ {
			accepted, _, err := client.SendRequest(name, true, origin)
			if err != nil {
				fatal(err)
			}
			if accepted {
				granted++
			}
		}
		fmt.Printf("global %s: %d of 200\n", name, granted)
	}
	for _, name := range []string{"shell", "exec", "subsystem"} {
		accepted, err := channel.SendRequest(name, true, ssh.Marshal(struct{ What string }{"mcp"}))
		if err != nil {
			fatal(err)
		}
		fmt.Printf("request %s: %v\n", name, accepted)
	}
	fmt.Fprintln(channel, "still alive")
	line, err := bufio.NewReader(channel).ReadString('\n')
	fmt.Printf("echo: %s %v\n", strings.TrimSpace(line), err)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go_gateway MODE")
		os.Exit(2)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		fatal(err)
	}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}
	if os.Args[1] == "rekey" {
		config.RekeyThreshold = 256 << 10
	}
	config.AddHostKey(signer)
	client, channel := accept(config)
	if os.Args[1] == "rekey" {
		if _, err := io.Copy(channel, channel); err != nil {
			fatal(err)
		}
		return
	}
	hostile(client, channel)
}
