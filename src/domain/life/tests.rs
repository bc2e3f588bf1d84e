//! Tables and properties of [`super::transition`].
