//! Reading an address from a URL, and writing it as one.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::password::Password;
use super::{
    Address, AddressError, DEFAULT_APPLICATION_NAME, DEFAULT_CONNECT_TIMEOUT, DEFAULT_PORT, DEFAULT_SCHEMA,
    DEFAULT_SOCKET_FOLDER, Host, Pooler, RootCertificates, TlsMode,
};
use domain::text::nearest::nearest;

/// PostgreSQL cuts longer names off.
const MAX_NAME_BYTES: usize = 63;

domain::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Parameter {
        Host = "host",
        Port = "port",
        User = "user",
        Password = "password",
        Database = "dbname",
        TlsMode = "sslmode",
        RootCertificates = "sslrootcert",
        Schema = "schema",
        Pooler = "pooler",
        Listen = "listen",
        ConnectTimeout = "connect_timeout",
        ApplicationName = "application_name",
    }
}

/// Parameters of libpq that an address of ours does not have.
const OF_LIBPQ: [&str; 14] = [
    "channel_binding",
    "client_encoding",
    "gssencmode",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "load_balance_hosts",
    "options",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "service",
];

impl Parameter {
    pub(super) fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }
}

/// The text behind `postgres://` or `postgresql://`, in any case.
pub(super) fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known)).then_some(rest)
}

pub(super) fn parse(url: &str) -> Result<Address, AddressError> {
    let rest = after_scheme(url).ok_or(AddressError::NotPostgres)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (account, hosts) = match authority.rsplit_once('@') {
        Some((account, hosts)) => (account, hosts),
        None => ("", authority),
    };
    let before_listen = query.split(Parameter::Listen.name()).next().unwrap_or_default();
    if !authority.contains('@') && (path.contains('@') || before_listen.contains('@')) {
        return Err(AddressError::UnescapedPassword);
    }
    let mut parts = Parts::default();
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    parts.set_unless_empty(Parameter::User, user)?;
    parts.set_unless_empty(Parameter::Password, password)?;
    parts.set_unless_empty(Parameter::Database, path.strip_prefix('/').unwrap_or_default())?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parts.set(known(&decoded(name)?)?, value)?;
    }
    let mut found = if hosts.is_empty() { Vec::new() } else { read_hosts(hosts)? };
    if let Some(hosts) = parts.take(Parameter::Host) {
        if !found.is_empty() {
            return Err(AddressError::Repeated(Parameter::Host.name()));
        }
        found = hosts.split(',').map(|host| named_host(host, None)).collect();
    }
    parts.into_address(found)
}

fn known(name: &str) -> Result<Parameter, AddressError> {
    Parameter::from_name(name).ok_or_else(|| {
        let nearest = nearest(name, Parameter::names());
        let is_known = nearest.is_some() || OF_LIBPQ.contains(&name);
        AddressError::UnknownParameter { name: is_known.then(|| name.to_owned()), nearest }
    })
}

/// The values of the parameters, unescaped. Most parts of a URL have a parameter that means the same.
#[derive(Default)]
struct Parts([Option<String>; Parameter::ALL.len()]);

impl Parts {
    fn set(&mut self, parameter: Parameter, text: &str) -> Result<(), AddressError> {
        // An address is itself full of characters with a meaning, so it is also read unescaped.
        let value = if parameter == Parameter::Listen && text.contains("://") {
            text.to_owned()
        } else {
            decoded(text)?
        };
        if value.contains('\0') {
            return Err(AddressError::Nul(parameter.name()));
        }
        match self.0[parameter as usize].replace(value) {
            None => Ok(()),
            Some(_) => Err(AddressError::Repeated(parameter.name())),
        }
    }

    fn set_unless_empty(&mut self, parameter: Parameter, text: &str) -> Result<(), AddressError> {
        if text.is_empty() { Ok(()) } else { self.set(parameter, text) }
    }

    fn take(&mut self, parameter: Parameter) -> Option<String> {
        self.0[parameter as usize].take().filter(|value| !value.is_empty())
    }

    fn into_address(mut self, mut hosts: Vec<Host>) -> Result<Address, AddressError> {
        if hosts.is_empty() {
            hosts.push(Host::Unix { folder: DEFAULT_SOCKET_FOLDER.into(), port: DEFAULT_PORT });
        }
        if let Some(ports) = self.take(Parameter::Port) {
            set_ports(&mut hosts, &ports)?;
        }
        let user = self.take(Parameter::User).unwrap_or_else(sys::process::user::name);
        let schema = self.take(Parameter::Schema).unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());
        if schema.len() > MAX_NAME_BYTES || schema.starts_with("pg_") {
            return Err(AddressError::BadSchema);
        }
        Ok(Address {
            password: self.take(Parameter::Password).map(Password::new),
            database: self.take(Parameter::Database).unwrap_or_else(|| user.clone()),
            user,
            hosts,
            schema,
            tls: self.take(Parameter::TlsMode).map(tls_mode).transpose()?,
            root_certificates: self
                .take(Parameter::RootCertificates)
                .map_or(RootCertificates::Usual, root_certificates),
            pooler: self.take(Parameter::Pooler).map_or(Ok(Pooler::None), pooler)?,
            listen: self.take(Parameter::Listen).as_deref().map(listen).transpose()?,
            connect_timeout: self
                .take(Parameter::ConnectTimeout)
                .map_or(Ok(DEFAULT_CONNECT_TIMEOUT), connect_timeout)?,
            application_name: self
                .take(Parameter::ApplicationName)
                .unwrap_or_else(|| DEFAULT_APPLICATION_NAME.to_owned()),
        })
    }
}

fn read_hosts(text: &str) -> Result<Vec<Host>, AddressError> {
    text.split(',').map(read_host).collect()
}

fn read_host(text: &str) -> Result<Host, AddressError> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']').ok_or(AddressError::OpenBracket)?;
            (name, rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest)))
        }
        None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let port = port.filter(|port| !port.is_empty()).map(read_port).transpose()?;
    let name = decoded(name)?;
    if name.contains('\0') {
        return Err(AddressError::Nul(Parameter::Host.name()));
    }
    Ok(named_host(&name, port))
}

fn named_host(name: &str, port: Option<u16>) -> Host {
    let port = port.unwrap_or(DEFAULT_PORT);
    match name {
        "" => Host::Unix { folder: DEFAULT_SOCKET_FOLDER.into(), port },
        folder if folder.starts_with('/') => Host::Unix { folder: PathBuf::from(folder), port },
        name => Host::Tcp { name: name.to_owned(), port },
    }
}

fn read_port(text: &str) -> Result<u16, AddressError> {
    text.parse().ok().filter(|port| *port != 0).ok_or(AddressError::BadPort)
}

/// One port for all hosts, or one for each.
fn set_ports(hosts: &mut [Host], text: &str) -> Result<(), AddressError> {
    let ports: Vec<u16> = text.split(',').map(read_port).collect::<Result<_, _>>()?;
    if ports.len() != 1 && ports.len() != hosts.len() {
        return Err(AddressError::PortCount { ports: ports.len(), hosts: hosts.len() });
    }
    for (host, new) in hosts.iter_mut().zip(ports.iter().cycle()) {
        match host {
            Host::Tcp { port, .. } | Host::Unix { port, .. } => *port = *new,
        }
    }
    Ok(())
}

fn tls_mode(value: String) -> Result<TlsMode, AddressError> {
    match (TlsMode::from_name(&value), &*value) {
        (Some(mode), _) => Ok(mode),
        (None, "allow" | "prefer" | "require") => Err(AddressError::WeakTls(value)),
        (None, _) => Err(AddressError::BadValue {
            name: Parameter::TlsMode.name(),
            value,
            expected: "use verify-full, verify-ca or disable",
        }),
    }
}

fn root_certificates(value: String) -> RootCertificates {
    if value == "system" { RootCertificates::System } else { RootCertificates::File(value.into()) }
}

fn pooler(value: String) -> Result<Pooler, AddressError> {
    match &*value {
        "transaction" => Ok(Pooler::Transaction),
        _ => Err(AddressError::BadValue {
            name: Parameter::Pooler.name(),
            value,
            expected: "the only value is `transaction`",
        }),
    }
}

fn listen(value: &str) -> Result<Box<Address>, AddressError> {
    let address = parse(value).map_err(|error| AddressError::Listen(Box::new(error)))?;
    let unfit = [
        (Parameter::Pooler, address.pooler != Pooler::None),
        (Parameter::Listen, address.listen.is_some()),
        (Parameter::Schema, address.schema != DEFAULT_SCHEMA),
    ];
    match unfit.into_iter().find(|(_, is_given)| *is_given) {
        Some((parameter, _)) => Err(AddressError::UnfitForListening(parameter.name())),
        None => Ok(Box::new(address)),
    }
}

fn connect_timeout(value: String) -> Result<Duration, AddressError> {
    let seconds = value.parse::<u16>().ok().filter(|seconds| *seconds > 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into())).ok_or(AddressError::BadValue {
        name: Parameter::ConnectTimeout.name(),
        value,
        expected: "it is a number of seconds, at least 1",
    })
}

/// The text with its escapes replaced.
fn decoded(text: &str) -> Result<String, AddressError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = value.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.ok_or(AddressError::BadEscape)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| AddressError::NotText)
}

/// An address as a URL, which [`parse`] reads back.
pub(super) struct Url<'a> {
    pub(super) address: &'a Address,
    pub(super) shows_password: bool,
}

impl fmt::Display for Url<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, shows_password } = *self;
        write!(f, "postgres://{}", Escaped(&address.user))?;
        if let Some(password) = address.password.as_ref().filter(|_| shows_password) {
            write!(f, ":{}", Escaped(password.reveal()))?;
        }
        f.write_str("@")?;
        for (at, host) in address.hosts.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "," })?;
            write_host(f, host)?;
        }
        write!(f, "/{}", Escaped(&address.database))?;
        for (at, (parameter, value)) in self.parameters().into_iter().enumerate() {
            let mark = if at == 0 { '?' } else { '&' };
            write!(f, "{mark}{}={}", parameter.name(), Escaped(&value))?;
        }
        Ok(())
    }
}

impl Url<'_> {
    /// The parameters that differ from their defaults.
    fn parameters(&self) -> Vec<(Parameter, String)> {
        let Self { address, shows_password } = *self;
        let certificates = match &address.root_certificates {
            RootCertificates::Usual => None,
            RootCertificates::System => Some("system".to_owned()),
            RootCertificates::File(path) => Some(path.display().to_string()),
        };
        let listen =
            address.listen.as_deref().map(|listen| Url { address: listen, shows_password }.to_string());
        let timeout = address.connect_timeout;
        let application = &address.application_name;
        let values = [
            (Parameter::TlsMode, address.tls.map(|mode| mode.name().to_owned())),
            (Parameter::RootCertificates, certificates),
            (Parameter::Schema, (address.schema != DEFAULT_SCHEMA).then(|| address.schema.clone())),
            (Parameter::Pooler, (address.pooler == Pooler::Transaction).then(|| "transaction".to_owned())),
            (Parameter::Listen, listen),
            (
                Parameter::ConnectTimeout,
                (timeout != DEFAULT_CONNECT_TIMEOUT).then(|| timeout.as_secs().to_string()),
            ),
            (
                Parameter::ApplicationName,
                (application != DEFAULT_APPLICATION_NAME).then(|| application.clone()),
            ),
        ];
        values.into_iter().filter_map(|(parameter, value)| Some((parameter, value?))).collect()
    }
}

fn write_host(f: &mut fmt::Formatter<'_>, host: &Host) -> fmt::Result {
    match host {
        Host::Tcp { name, .. } if name.contains(':') => write!(f, "[{name}]")?,
        Host::Tcp { name, .. } => write!(f, "{}", Escaped(name))?,
        Host::Unix { folder, .. } => write!(f, "{}", Escaped(&folder.display().to_string()))?,
    }
    if host.port() == DEFAULT_PORT { Ok(()) } else { write!(f, ":{}", host.port()) }
}

/// Text with every byte escaped that means something in a URL or to a shell.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
